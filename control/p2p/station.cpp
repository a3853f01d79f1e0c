// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/station.hpp"

#include <fmt/format.h>

#include <utility>

#include "control/p2p/network_manager.hpp"
#include "control/p2p/stop_fd.hpp"
#include "control/p2p/supplicant_names.hpp"
#include "engine/base/time.hpp"

namespace onehop::p2p {

namespace {

// id_str of our networks: the mark, and behind it what else is to be undone.
constexpr const char* mark = "onehop";
constexpr const char* interface_word = " interface";
constexpr const char* managed_word = " managed";
constexpr const char* group_word = " group";

/// Above that of any network that a person or NetworkManager has made.
constexpr std::int64_t priority = 1'000'000;
constexpr Nanos poll_interval = 100ms;
/// NetworkManager takes its interface out of wpa_supplicant when it lets go, within a second.
constexpr Nanos release_limit = 5s;

constexpr const char* joining = "join the network";
constexpr const char* leaving = "leave the network";

ByteArray bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

/// Ours is a network that carries our mark.
struct Ours {
  Supplicant::Known interface;
  std::string path, id;
};

/// find_ours looks at one interface; empty: at all.
Result<std::vector<Ours>> find_ours(Supplicant& supplicant, const std::string& interface) {
  std::vector<Ours> found;
  ONEHOP_TRY(interfaces, supplicant.interfaces());
  for (const Supplicant::Known& known : interfaces) {
    if (!interface.empty() && known.name != interface) continue;
    for (const std::string& path :
         supplicant.field<std::vector<std::string>>(known.path, interface_interface, "Networks")) {
      const std::string id =
          text_of(supplicant.field<Dict>(path, network_interface, "Properties"), "id_str");
      if (id == fmt::format("\"{}\"", mark) || id.starts_with(fmt::format("\"{} ", mark)))
        found.push_back({known, path, id});
    }
  }
  return found;
}

/// undo takes back what has been done so far, and returns `error`.
Error undo(Supplicant& supplicant, bool was_managed, const Error& error) {
  const auto left = leave_networks(supplicant, supplicant.interface());
  // A network that is there carries the marks of all the rest.
  const bool is_undone =
      left.has_value() && !(left.value().networks.empty() && left.value().radios.empty());
  if (is_undone) return error;
  if (supplicant.has_created()) (void)supplicant.remove_own_interface();
  if (was_managed) (void)set_managed(supplicant.bus(), supplicant.interface(), true);
  return error;
}

/// let_go has NetworkManager let go of an interface, and waits until it has taken that out of
/// wpa_supplicant.
Result<void> let_go(Supplicant& supplicant, int stop_fd,
                    const std::function<void(const std::string&)>& on_text) {
  const std::string interface = supplicant.interface();
  const bool is_connected = supplicant.is_connected();
  ONEHOP_TRYV(set_managed(supplicant.bus(), interface, false));
  const Instant give_up_at = monotonic_now() + release_limit;
  while (supplicant.is_interface_known() && monotonic_now() < give_up_at &&
         !is_stopped(stop_fd, poll_interval)) {
  }
  // What is written into an interface that NetworkManager is about to remove would be lost.
  if (is_stopped(stop_fd, Nanos{0})) {
    (void)set_managed(supplicant.bus(), interface, true);
    return Error{ExitCode::interrupted, "take " + interface + " from NetworkManager",
                 "interrupted"};
  }
  on_text("NetworkManager leaves " + interface + " alone until 'onehop p2p leave'" +
          (is_connected ? ", and " + interface + " its network" : ""));
  return success();
}

/// take_device has NetworkManager let go, and opens again what it or leave_networks has taken out
/// of wpa_supplicant; true where NetworkManager had the device.
Result<bool> take_device(Supplicant& supplicant, bool needs_p2p, int stop_fd,
                         const std::function<void(const std::string&)>& on_text) {
  const std::string interface = supplicant.interface();
  const bool was_managed = is_managed(supplicant.bus(), interface);
  if (was_managed) {
    ONEHOP_TRYV(let_go(supplicant, stop_fd, on_text));
  }
  if (supplicant.is_interface_known()) return was_managed;
  auto again =
      Supplicant::open({.interface = interface, .needs_p2p = needs_p2p, .may_create = true});
  if (again.has_error()) {
    if (was_managed) (void)set_managed(supplicant.bus(), interface, true);
    return again.error();
  }
  supplicant = std::move(again).value();
  return was_managed;
}

/// id_of says what is to be undone beside the network.
std::string id_of(const Supplicant& supplicant, bool was_managed) {
  return std::string{mark} + (was_managed ? managed_word : "") +
         (supplicant.has_created() ? interface_word : "");
}

/// connect_station adds the network and waits until it is the one that the interface is in.
Result<std::string> connect_station(Supplicant& supplicant, const Access& access,
                                    const std::string& id, Nanos limit, int stop_fd) {
  const Dict about{{"ssid", bytes_of(access.ssid)},
                   {"psk", access.passphrase},
                   {"key_mgmt", std::string{"WPA-PSK"}},
                   {"proto", std::string{"RSN"}},
                   {"pairwise", std::string{"CCMP"}},
                   {"scan_ssid", std::int64_t{1}},
                   {"priority", priority},
                   {"id_str", id}};
  Bus& bus = supplicant.bus();
  const Bus::Target interface = supplicant.target(interface_interface);
  ONEHOP_TRY(network, bus.call(interface, "AddNetwork", {about}, joining));
  ONEHOP_TRYV(
      bus.set_property({supplicant_service, network, network_interface}, "Enabled", true, joining));
  (void)bus.call(interface, "Reassociate", {}, joining);
  const Instant give_up_at = monotonic_now() + limit;
  bool has_shaken = false;
  for (;;) {
    ONEHOP_TRY(state, bus.get<std::string>(interface, "State", joining));
    const auto current = bus.get<std::string>(interface, "CurrentNetwork", joining);
    const bool is_ours = current.has_value() && current.value() == network;
    has_shaken |= is_ours && state == "4way_handshake";
    if (is_ours && state == "completed") return network;
    if (monotonic_now() >= give_up_at)
      return Error{ExitCode::timed_out, joining,
                   has_shaken ? "the other machine does not take the passphrase"
                              : "it was not found, or did not answer",
                   has_shaken ? "Read it again where 'onehop p2p host' shows it"
                              : "Is its channel one that this radio has?"};
    if (is_stopped(stop_fd, poll_interval))
      return Error{ExitCode::interrupted, joining, "interrupted"};
  }
}

}  // namespace

Result<Group> join_network(const std::string& interface, const Access& access, Nanos limit,
                           int stop_fd, const std::function<void(const std::string&)>& on_text) {
  const Supplicant::Options options{.interface = interface, .needs_p2p = false, .may_create = true};
  ONEHOP_TRY(supplicant, Supplicant::open(options));
  (void)leave_networks(supplicant, supplicant.interface());  // what an earlier join left
  ONEHOP_TRY(was_managed, take_device(supplicant, options.needs_p2p, stop_fd, on_text));
  const auto network =
      connect_station(supplicant, access, id_of(supplicant, was_managed), limit, stop_fd);
  if (network.has_error()) return undo(supplicant, was_managed, network.error());
  return Group{.path = network.value(),
               .interface_name = supplicant.interface(),
               .role = Role::client,
               .ssid = access.ssid};
}

Result<bool> take_radio(Supplicant& supplicant, int stop_fd,
                        const std::function<void(const std::string&)>& on_text) {
  ONEHOP_TRY(was_managed, take_device(supplicant, true, stop_fd, on_text));
  if (!was_managed) return false;
  const Dict never_enabled{{"ssid", bytes_of(mark)},
                           {"key_mgmt", std::string{"NONE"}},
                           {"id_str", id_of(supplicant, true) + group_word}};
  const auto added = supplicant.bus().call(supplicant.target(interface_interface), "AddNetwork",
                                           {never_enabled}, "take the radio from NetworkManager");
  if (added.has_error()) return undo(supplicant, was_managed, added.error());
  return true;
}

Result<Left> leave_networks(Supplicant& supplicant, const std::string& interface) {
  Left left;
  ONEHOP_TRY(ours, find_ours(supplicant, interface));
  for (const Ours& each : ours) {
    const auto has = [&each](const char* word) { return each.id.find(word) != std::string::npos; };
    const std::string& name = each.interface.name;
    const Bus::Target target{supplicant_service, each.interface.path, interface_interface};
    ONEHOP_TRYV(supplicant.bus().call(target, "RemoveNetwork", {ObjectPath{each.path}}, leaving));
    if (!has(group_word)) left.networks.push_back(name);
    if (has(interface_word)) {
      ONEHOP_TRYV(supplicant.remove_interface(each.interface.path));
    } else {
      (void)supplicant.bus().call(target, "Reassociate", {}, leaving);
    }
    if (!has(managed_word)) continue;
    ONEHOP_TRYV(set_managed(supplicant.bus(), name, true));
    left.radios.push_back(name);
  }
  return left;
}

}  // namespace onehop::p2p
