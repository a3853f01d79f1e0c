// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/find/avahi_entry.hpp"

#include <cerrno>
#include <utility>

namespace onehop::find {

namespace {

using bus::Bus;
using bus::Number;

const std::string group_interface = avahi + ".EntryGroup";
constexpr const char* publish_attempt = "publish the receiver by Avahi";
// Numbers of states, of avahi-common/defs.h.
constexpr std::int64_t server_running = 2, group_collision = 3;
// A machine that answers to every name would keep us busy for ever.
constexpr int names_max = 32;

}  // namespace

Result<AvahiEntry> AvahiEntry::open(Service service) {
  ONEHOP_TRY(bus, Bus::open());
  AvahiEntry entry{std::move(bus), std::move(service)};
  ONEHOP_TRYV(entry.bus_.listen_owner(avahi));
  ONEHOP_TRYV(entry.bus_.listen(avahi, avahi_server.interface));
  ONEHOP_TRYV(entry.bus_.listen(avahi, group_interface));
  entry.publish();
  return entry;
}

/// Where the daemon does not run, or is not ready, its signal calls again.
void AvahiEntry::publish() {
  if (!bus_.has_owner(avahi)) return;
  const auto state = bus_.call_for(avahi_server, "GetState", {}, publish_attempt);
  const auto* const number = state ? std::get_if<std::int64_t>(&state.value()) : nullptr;
  if (number == nullptr || *number != server_running) return;
  if (group_.empty()) {
    auto made = bus_.call(avahi_server, "EntryGroupNew", {}, publish_attempt);
    if (made.has_error()) return;
    group_ = std::move(made).value();
  }
  for (; renamed_total_ < names_max; rename()) {
    const auto added = add();
    if (!added.has_error() || added.error().errno_value != EEXIST) return;
  }
}

void AvahiEntry::rename() {
  ++renamed_total_;
  auto other = bus_.call(avahi_server, "GetAlternativeServiceName", {{name_}}, publish_attempt);
  if (!other.has_error() && !other.value().empty()) name_ = std::move(other).value();
}

Result<void> AvahiEntry::add() {
  const Bus::Target group{avahi, group_, group_interface, false};
  const std::string text = instance_key + service_.instance;
  ONEHOP_TRYV(bus_.call(group, "Reset", {}, publish_attempt));
  ONEHOP_TRYV(bus_.call(group, "AddService",
                        {{std::int64_t{service_.ifindex}},
                         {std::int64_t{service_.protocol}},
                         {Number{'u', 0}},
                         {name_},
                         {std::string{avahi_type}},
                         {std::string{}},  // the domain that the daemon has
                         {std::string{}},  // and its host
                         {Number{'q', service_.port}},
                         {std::vector<bus::ByteArray>{bus::ByteArray(text.begin(), text.end())}}},
                        publish_attempt));
  ONEHOP_TRYV(bus_.call(group, "Commit", {}, publish_attempt));
  return success();
}

bool AvahiEntry::process() {
  return bus_.process([this](const Bus::Signal& signal) { on(signal); });
}

void AvahiEntry::on(const Bus::Signal& signal) {
  if (signal.name == "NameOwnerChanged") {
    group_.clear();
    return publish();
  }
  if (signal.name != "StateChanged") return;
  const auto state = signal.at<std::int64_t>(0);
  // The server's: the host has another name, and what it publishes is to be added again.
  if (signal.path == avahi_server.path && state == server_running) return publish();
  if (signal.path != group_ || state != group_collision || renamed_total_ >= names_max) return;
  rename();
  publish();
}

}  // namespace onehop::find
