// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/bus/bus.hpp"

#include <poll.h>

#include "control/bus/bus_message.hpp"

namespace onehop::bus {

namespace {

Error error_of(const sd_bus_error& error, int code, const Bus::Target& target,
               const std::string& attempt) {
  const std::string name = error.name == nullptr ? "" : error.name;
  const bool has_text = error.message != nullptr && *error.message != '\0';
  const std::string text = has_text ? error.message : name.empty() ? errno_text(-code) : name;
  const auto is_standard = [&](const char* word) {
    return name == std::string{"org.freedesktop.DBus.Error."} + word;
  };
  if (is_standard("AccessDenied"))
    return {ExitCode::privilege_missing, attempt, "the bus's policy refuses it to this user",
            "Run it as root or as a member of the group netdev. The policy is "
            "dbus-1/system.d/org.onehop.p2p.conf, or your distribution's for wpa_supplicant",
            EACCES};
  if (is_standard("ServiceUnknown") || is_standard("NameHasNoOwner") ||
      name.starts_with("org.freedesktop.DBus.Error.Spawn") ||
      name.starts_with("org.freedesktop.systemd1"))
    return {ExitCode::io_unavailable, attempt, "there is no " + target.service + " on the bus", "",
            ESRCH};
  if (is_standard("NoReply") || is_standard("Timeout") || code == -ETIMEDOUT)
    return {ExitCode::timed_out, attempt, "no answer: " + text, "", ETIMEDOUT};
  // Of polkit's answer to NetworkManager.
  if (name.ends_with(".PermissionDenied"))
    return {ExitCode::privilege_missing, attempt, text, "Run it as root", EACCES};
  // Of Avahi.
  if (name.ends_with(".CollisionError"))
    return {ExitCode::io_unavailable, attempt, text, "", EEXIST};
  // Of Connect: .ConnectChannelUnavailable, .ConnectChannelUnsupported.
  const bool is_channel = name.find(".ConnectChannel") != std::string::npos;
  return {ExitCode::io_unavailable, attempt, text, "", is_channel ? ECHRNG : EIO};
}

Error failed(int code, const std::string& attempt) {
  return errno_error(ExitCode::io_unavailable, attempt, "", -code);
}

Bus::Target properties_of(const Bus::Target& target) {
  return {target.service, target.path, "org.freedesktop.DBus.Properties", target.is_activated};
}

/// request waits for the answer. `variant`: what stands behind the arguments, as a variant.
Result<Message> request(sd_bus* bus, const Bus::Target& target, const std::string& method,
                        const std::vector<Value>& arguments, const std::string& attempt,
                        const Value* variant = nullptr) {
  sd_bus_message *made = nullptr, *answer = nullptr;
  int code = sd_bus_message_new_method_call(bus, &made, target.service.c_str(), target.path.c_str(),
                                            target.interface.c_str(), method.c_str());
  const Message message{made};
  if (code >= 0) code = sd_bus_message_set_auto_start(made, target.is_activated ? 1 : 0);
  for (const Value& argument : arguments)
    if (code >= 0) code = append(made, argument);
  if (code >= 0 && variant != nullptr) code = append_variant(made, *variant);
  if (code < 0) return failed(code, attempt);
  sd_bus_error error{};
  code = sd_bus_call(bus, made, 0, &error, &answer);
  if (code >= 0) return Message{answer};
  Error refused = error_of(error, code, target, attempt);
  sd_bus_error_free(&error);
  return refused;
}

int keep_signal(sd_bus_message* message, void* waiting, sd_bus_error*) {
  Bus::Signal signal{
      sd_bus_message_get_path(message), sd_bus_message_get_member(message), {}, {}, {}};
  for (Value value; read_value(message, value) > 0;) {
    if (auto* dict = std::get_if<Dict>(&value)) {
      signal.dict = std::move(*dict);
      continue;
    }
    if (auto* text = std::get_if<std::string>(&value); text != nullptr && signal.text.empty())
      signal.text = *text;
    signal.arguments.push_back(std::move(value));
  }
  static_cast<std::vector<Bus::Signal>*>(waiting)->push_back(std::move(signal));
  return 0;
}

}  // namespace

void Bus::Closer::operator()(sd_bus* bus) const noexcept { sd_bus_flush_close_unref(bus); }

Bus::Bus(sd_bus* bus) : bus_{bus} {}

Result<Bus> Bus::opened(int code, sd_bus* bus, Nanos limit, Error refused) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(limit).count();
  Bus made{bus};
  if (code >= 0) code = sd_bus_set_method_call_timeout(bus, static_cast<std::uint64_t>(us));
  if (code >= 0) return made;
  refused.cause = errno_text(-code);
  refused.errno_value = -code;
  return refused;
}

Result<Bus> Bus::open(Nanos limit) {
  sd_bus* bus = nullptr;
  const int code = sd_bus_open_system(&bus);
  return opened(code, bus, limit,
                {ExitCode::io_unavailable, "connect to the system bus", "",
                 "Start dbus (systemctl start dbus), or name another bus with "
                 "DBUS_SYSTEM_BUS_ADDRESS"});
}

Result<Bus> Bus::open_session(Nanos limit) {
  sd_bus* bus = nullptr;
  const int code = sd_bus_open_user(&bus);
  return opened(
      code, bus, limit,
      {ExitCode::io_unavailable, "connect to the session bus", "",
       "It belongs to a desktop session; another one is named by DBUS_SESSION_BUS_ADDRESS"});
}

Result<Value> Bus::call_for(const Target& target, const std::string& method,
                            const std::vector<Value>& arguments, const std::string& attempt) {
  ONEHOP_TRY(reply, request(bus_.get(), target, method, arguments, attempt));
  Value first;
  (void)read_value(reply.get(), first);
  return first;
}

Result<std::string> Bus::call(const Target& target, const std::string& method,
                              const std::vector<Value>& arguments, const std::string& attempt) {
  ONEHOP_TRY(first, call_for(target, method, arguments, attempt));
  const auto* text = std::get_if<std::string>(&first);
  return text == nullptr ? std::string{} : *text;
}

Result<Value> Bus::property(const Target& target, const std::string& name,
                            const std::string& attempt) {
  ONEHOP_TRY(reply,
             request(bus_.get(), properties_of(target), "Get", {target.interface, name}, attempt));
  Value value;
  if (read_variant(reply.get(), value) <= 0)
    return Error{ExitCode::io_unavailable, attempt, name + " has an unexpected type", "", EPROTO};
  return value;
}

Result<void> Bus::set_property(const Target& target, const std::string& name, const Value& value,
                               const std::string& attempt) {
  ONEHOP_TRYV(
      request(bus_.get(), properties_of(target), "Set", {target.interface, name}, attempt, &value));
  return success();
}

bool Bus::has_owner(const std::string& service) {
  const Target daemon{"org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus"};
  return call(daemon, "GetNameOwner", {service}, "ask the bus").has_value();
}

Result<void> Bus::listen(const std::string& service, const std::string& interface) {
  const int code = sd_bus_match_signal(bus_.get(), nullptr, service.c_str(), nullptr,
                                       interface.c_str(), nullptr, keep_signal, waiting_.get());
  if (code < 0) return failed(code, "listen to " + service);
  return success();
}

Result<void> Bus::listen_owner(const std::string& service) {
  const std::string match =
      "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
      "member='NameOwnerChanged',arg0='" +
      service + "'";
  const int code =
      sd_bus_add_match(bus_.get(), nullptr, match.c_str(), keep_signal, waiting_.get());
  if (code < 0) return failed(code, "listen to who is " + service);
  return success();
}

bool Bus::process(const std::function<void(const Signal&)>& on_signal) {
  int code = 1;
  while (code > 0) code = sd_bus_process(bus_.get(), nullptr);
  // Handed over here, and not while sd-bus dispatches: a handler may call.
  while (!waiting_->empty()) {
    const auto signals = std::exchange(*waiting_, {});
    for (const Signal& signal : signals) on_signal(signal);
  }
  return code >= 0;
}

int Bus::fd() const { return sd_bus_get_fd(bus_.get()); }

short Bus::events() const {
  const int events = sd_bus_get_events(bus_.get());
  return static_cast<short>(events < 0 ? POLLIN : events);
}

}  // namespace onehop::bus
