// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/station.hpp"

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

/// Above that of any network that a person or NetworkManager has made.
constexpr std::int64_t priority = 1'000'000;
constexpr Nanos poll_interval = 100ms;
/// NetworkManager takes its interface out of wpa_supplicant when it lets go, within a second.
constexpr Nanos release_limit = 5s;

constexpr const char* joining = "join the network";

ByteArray bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

/// Undo: what join_network has done so far, taken back unless it is kept.
class Undo {
 public:
  Undo(Supplicant& supplicant, bool was_managed)
      : supplicant_{supplicant}, was_managed_{was_managed} {}
  ~Undo() {
    if (is_kept_) return;
    // A network that is there carries the marks of all the rest.
    const auto left = leave_networks(supplicant_);
    if (left.has_value() && !left.value().empty()) return;
    if (supplicant_.has_created()) (void)supplicant_.remove_own_interface();
    if (was_managed_) (void)set_managed(supplicant_.bus(), supplicant_.interface(), true);
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  void keep() { is_kept_ = true; }

 private:
  Supplicant& supplicant_;
  const bool was_managed_;
  bool is_kept_ = false;
};

/// take_device has NetworkManager let go; true where it had the device.
Result<bool> take_device(Supplicant& supplicant, int stop_fd) {
  const std::string interface = supplicant.interface();
  if (!is_managed(supplicant.bus(), interface)) return false;
  ONEHOP_TRYV(set_managed(supplicant.bus(), interface, false));
  const Instant give_up_at = monotonic_now() + release_limit;
  while (supplicant.is_interface_known() && monotonic_now() < give_up_at &&
         !is_stopped(stop_fd, poll_interval)) {
  }
  return true;
}

/// wait_for_handshake waits until our network is the one that the interface is in.
Result<void> wait_for_handshake(Supplicant& supplicant, const std::string& network, Nanos limit,
                                int stop_fd) {
  const Instant give_up_at = monotonic_now() + limit;
  bool has_shaken = false;
  for (;;) {
    const auto state =
        supplicant.bus().property(supplicant.target(interface_interface), "State", joining);
    if (state.has_error()) return state.error();
    const auto current = supplicant.bus().property(supplicant.target(interface_interface),
                                                   "CurrentNetwork", joining);
    const bool is_ours = current.has_value() && text_of(current.value()) == network;
    has_shaken |= is_ours && text_of(state.value()) == "4way_handshake";
    if (is_ours && text_of(state.value()) == "completed") return success();
    if (monotonic_now() >= give_up_at)
      return Error{ExitCode::timed_out, joining,
                   has_shaken ? "the other machine does not take the passphrase"
                              : "it was not found, or did not answer",
                   has_shaken ? "Read it again where 'onehop p2p host' shows it"
                              : "Is its channel one that this radio has?",
                   0};
    if (is_stopped(stop_fd, poll_interval))
      return Error{ExitCode::interrupted, joining, "interrupted"};
  }
}

Result<std::string> add_network(Supplicant& supplicant, const Access& access,
                                const std::string& id) {
  const Dict network{{"ssid", bytes_of(access.ssid)},
                     {"psk", access.passphrase},
                     {"key_mgmt", std::string{"WPA-PSK"}},
                     {"proto", std::string{"RSN"}},
                     {"pairwise", std::string{"CCMP"}},
                     {"scan_ssid", std::int64_t{1}},
                     {"priority", priority},
                     {"id_str", id}};
  return supplicant.bus().call(supplicant.target(interface_interface), "AddNetwork", {network},
                               joining);
}

}  // namespace

Result<Group> join_network(const std::string& interface, const Access& access, Nanos limit,
                           int stop_fd, const std::function<void(const std::string&)>& on_text) {
  const Supplicant::Options options{.interface = interface, .needs_p2p = false, .may_create = true};
  ONEHOP_TRY(supplicant, Supplicant::open(options));
  (void)leave_networks(supplicant);  // what an earlier join left
  std::string id = mark;
  ONEHOP_TRY(was_managed, take_device(supplicant, stop_fd));
  if (was_managed) {
    on_text("NetworkManager leaves " + supplicant.interface() + " alone until 'onehop p2p leave'");
    id += managed_word;
  }
  if (was_managed && !supplicant.is_interface_known()) {
    auto again = Supplicant::open(
        {.interface = supplicant.interface(), .needs_p2p = false, .may_create = true});
    if (again.has_error()) {
      (void)set_managed(supplicant.bus(), supplicant.interface(), true);
      return again.error();
    }
    supplicant = std::move(again).value();
  }
  if (supplicant.has_created()) id += interface_word;
  Undo undo{supplicant, was_managed};
  ONEHOP_TRY(network, add_network(supplicant, access, id));
  ONEHOP_TRYV(supplicant.bus().set_property({supplicant_service, network, network_interface},
                                            "Enabled", true, joining));
  (void)supplicant.bus().call(supplicant.target(interface_interface), "Reassociate", {}, joining);
  ONEHOP_TRYV(wait_for_handshake(supplicant, network, limit, stop_fd));
  undo.keep();
  return Group{.path = network,
               .interface_name = supplicant.interface(),
               .role = Role::client,
               .ssid = access.ssid};
}

Result<std::vector<std::string>> leave_networks(Supplicant& supplicant) {
  std::vector<std::string> left;
  ONEHOP_TRY(interfaces, supplicant.interfaces());
  for (const Supplicant::Known& known : interfaces) {
    const Bus::Target target{supplicant_service, known.path, interface_interface};
    const auto networks = supplicant.bus().property(target, "Networks", "leave the network");
    const auto* paths =
        networks.has_value() ? std::get_if<std::vector<std::string>>(&networks.value()) : nullptr;
    if (paths == nullptr) continue;
    for (const std::string& path : *paths) {
      const auto about = supplicant.bus().dict_property(
          {supplicant_service, path, network_interface}, "Properties", "leave the network");
      const std::string id = about.has_value() ? text_of(about.value(), "id_str") : "";
      if (id != "\"" + std::string{mark} + "\"" && !id.starts_with("\"" + std::string{mark} + " "))
        continue;
      ONEHOP_TRYV(
          supplicant.bus().call(target, "RemoveNetwork", {ObjectPath{path}}, "leave the network"));
      left.push_back(known.name);
      if (id.find(interface_word) != std::string::npos) {
        ONEHOP_TRYV(supplicant.remove_interface(known.path));
      } else {
        (void)supplicant.bus().call(target, "Reassociate", {}, "leave the network");
      }
      if (id.find(managed_word) != std::string::npos) {
        ONEHOP_TRYV(set_managed(supplicant.bus(), known.name, true));
      }
    }
  }
  return left;
}

}  // namespace onehop::p2p
