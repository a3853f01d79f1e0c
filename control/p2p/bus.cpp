// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/bus.hpp"

#include <poll.h>

#include <cerrno>

#include "control/p2p/bus_message.hpp"

namespace onehop::p2p {

namespace {

constexpr const char* properties_interface = "org.freedesktop.DBus.Properties";

Error error_of(const sd_bus_error& error, int code, const Bus::Target& target,
               const std::string& attempt) {
  const std::string name = error.name == nullptr ? "" : error.name;
  const std::string text = error.message == nullptr ? errno_text(-code) : error.message;
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
    return {ExitCode::io_unavailable, attempt,
            "there is no " + target.service + " on the system bus", "", ESRCH};
  if (is_standard("NoReply") || is_standard("Timeout") || code == -ETIMEDOUT)
    return {ExitCode::timed_out, attempt, "no answer: " + text, "", ETIMEDOUT};
  // Of polkit's answer to NetworkManager.
  if (name.ends_with(".PermissionDenied"))
    return {ExitCode::privilege_missing, attempt, text, "Run it as root", EACCES};
  // Of Connect: .ConnectChannelUnavailable, .ConnectChannelUnsupported.
  const bool is_channel = name.find(".ConnectChannel") != std::string::npos;
  return {ExitCode::io_unavailable, attempt, text, "", is_channel ? ECHRNG : EIO};
}

Error failed(int code, const std::string& attempt) {
  return errno_error(ExitCode::io_unavailable, attempt, "", -code);
}

/// get_property leaves the answer, a variant, in `reply`.
Result<void> get_property(sd_bus* bus, const Bus::Target& target, const std::string& name,
                          const std::string& attempt, Message& reply) {
  BusError error;
  const int code = sd_bus_call_method(bus, target.service.c_str(), target.path.c_str(),
                                      properties_interface, "Get", error.get(), reply.out(), "ss",
                                      target.interface.c_str(), name.c_str());
  if (code < 0) return error_of(*error.get(), code, target, attempt);
  return success();
}

int keep_signal(sd_bus_message* message, void* waiting, sd_bus_error*) {
  Bus::Signal signal{sd_bus_message_get_path(message),
                     sd_bus_message_get_interface(message),
                     sd_bus_message_get_member(message),
                     {},
                     {}};
  read_arguments(message, signal.arguments, signal.dict);
  static_cast<std::vector<Bus::Signal>*>(waiting)->push_back(std::move(signal));
  return 0;
}

}  // namespace

void Bus::Closer::operator()(sd_bus* bus) const noexcept { sd_bus_flush_close_unref(bus); }

Bus::Bus(sd_bus* bus) : bus_{bus} {}

Result<Bus> Bus::open(Nanos limit) {
  ONEHOP_TRYV(load_sd_bus());
  sd_bus* bus = nullptr;
  if (const int code = sd_bus_open_system(&bus); code < 0)
    return errno_error(ExitCode::io_unavailable, "connect to the system bus",
                       "Start dbus (systemctl start dbus), or name another bus with "
                       "DBUS_SYSTEM_BUS_ADDRESS",
                       -code);
  Bus opened{bus};
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(limit).count();
  if (const int code = sd_bus_set_method_call_timeout(bus, static_cast<std::uint64_t>(us));
      code < 0)
    return failed(code, "connect to the system bus");
  return opened;
}

Result<std::string> Bus::call(const Target& target, const std::string& method,
                              const std::vector<Argument>& arguments, const std::string& attempt) {
  Message message, reply;
  int code =
      sd_bus_message_new_method_call(bus_.get(), message.out(), target.service.c_str(),
                                     target.path.c_str(), target.interface.c_str(), method.c_str());
  for (const Argument& argument : arguments)
    if (code >= 0) code = append(message.get(), argument);
  if (code < 0) return failed(code, attempt);
  BusError error;
  code = sd_bus_call(bus_.get(), message.get(), 0, error.get(), reply.out());
  if (code < 0) return error_of(*error.get(), code, target, attempt);
  const char* text = "";
  char type = 0;
  if (sd_bus_message_peek_type(reply.get(), &type, nullptr) > 0 &&
      (type == SD_BUS_TYPE_STRING || type == SD_BUS_TYPE_OBJECT_PATH))
    sd_bus_message_read_basic(reply.get(), type, &text);
  return std::string{text};
}

Result<Value> Bus::property(const Target& target, const std::string& name,
                            const std::string& attempt) {
  Message reply;
  ONEHOP_TRYV(get_property(bus_.get(), target, name, attempt, reply));
  Value value;
  if (read_variant(reply.get(), value) <= 0)
    return Error{ExitCode::io_unavailable, attempt, name + " has an unexpected type", "", EPROTO};
  return value;
}

Result<Dict> Bus::dict_property(const Target& target, const std::string& name,
                                const std::string& attempt) {
  Message reply;
  ONEHOP_TRYV(get_property(bus_.get(), target, name, attempt, reply));
  Dict dict;
  int code = sd_bus_message_enter_container(reply.get(), 'v', "a{sv}");
  if (code >= 0) code = read_dict(reply.get(), dict);
  if (code < 0) return failed(code, attempt);
  return dict;
}

Result<void> Bus::set_property(const Target& target, const std::string& name, const Argument& value,
                               const std::string& attempt) {
  Message message, reply;
  int code = sd_bus_message_new_method_call(bus_.get(), message.out(), target.service.c_str(),
                                            target.path.c_str(), properties_interface, "Set");
  if (code >= 0)
    code = sd_bus_message_append(message.get(), "ss", target.interface.c_str(), name.c_str());
  if (code >= 0) code = append_variant(message.get(), value);
  if (code < 0) return failed(code, attempt);
  BusError error;
  code = sd_bus_call(bus_.get(), message.get(), 0, error.get(), reply.out());
  if (code < 0) return error_of(*error.get(), code, target, attempt);
  return success();
}

bool Bus::has_owner(const std::string& service) {
  Message reply;
  int has = 0;
  return sd_bus_call_method(bus_.get(), "org.freedesktop.DBus", "/org/freedesktop/DBus",
                            "org.freedesktop.DBus", "NameHasOwner", nullptr, reply.out(), "s",
                            service.c_str()) >= 0 &&
         sd_bus_message_read(reply.get(), "b", &has) > 0 && has != 0;
}

Result<void> Bus::listen(const std::string& service, const std::string& interface) {
  const int code = sd_bus_match_signal(bus_.get(), nullptr, service.c_str(), nullptr,
                                       interface.c_str(), nullptr, keep_signal, waiting_.get());
  if (code < 0) return failed(code, "listen to " + service);
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

}  // namespace onehop::p2p
