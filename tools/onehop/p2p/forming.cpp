// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/p2p/forming.hpp"

#include <net/if.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <array>
#include <fstream>

#include "control/link/nl80211_socket.hpp"
#include "control/link/radio.hpp"
#include "control/p2p/group_link.hpp"
#include "control/p2p/station.hpp"
#include "control/transfer/port/local_address.hpp"
#include "tools/onehop/p2p/ipv4_keeper.hpp"

namespace onehop::p2p {

namespace {

std::string host_name() {
  std::array<char, 65> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "onehop";
}

std::string first_word(const std::filesystem::path& file) {
  std::string word;
  std::ifstream{file} >> word;
  return word;
}

/// check_network sees to what becomes of the network that the radio is in.
Result<void> check_network(Supplicant& supplicant, const tool::Reporter& reporter) {
  if (!supplicant.is_connected()) return success();
  const auto facts = link::read_radio(supplicant.interface());
  if (facts.has_error()) {
    reporter.warn(facts.error().message());
    return success();
  }
  const std::uint32_t channels = facts.value().channels_beside_station;
  if (channels == 1)
    reporter.say(supplicant.interface() +
                 " keeps its network; the radio has one channel, and the group has to be there");
  if (channels > 0) return success();
  return Error{ExitCode::io_unavailable, "form a group on " + supplicant.interface(),
               "its radio " + link::radio_text(facts.value()),
               "Leave the network first: nmcli device disconnect " + supplicant.interface() +
                   ", or wpa_cli -i " + supplicant.interface() + " disconnect",
               0};
}

Result<Formed> form(Supplicant& supplicant, const Plan& plan, const tool::Reporter& reporter,
                    int stop_fd) {
  // Once more: with an interface that was taken, wpa_supplicant has forgotten the name.
  ONEHOP_TRYV(supplicant.name_device(host_name()));
  ONEHOP_TRYV(check_network(supplicant, reporter));
  const bool is_accepting = plan.task == Plan::Task::accept;
  // Without it a sender finds this machine by its name.
  if (const auto told = supplicant.announce(is_accepting); told.has_error())
    reporter.warn(told.error().message());
  auto formed = form_group(supplicant, plan, progress_for(reporter), stop_fd);
  if (is_accepting) (void)supplicant.announce(false);
  ONEHOP_TRY(group, std::move(formed));
  auto address = wait_for_link_local(group->interface_name, address_limit, stop_fd);
  if (address.has_error()) {
    (void)supplicant.remove_group(group->path);
    return address.error();
  }
  // Members that run onehop need no IPv4, so the group is of use without it.
  if (group->role == Role::owner)
    if (const auto own = keep_ipv4(group->interface_name); own.has_error())
      reporter.warn("the group has IPv6 alone: " + own.error().message());
  return Formed{*group, address.value()};
}

}  // namespace

Result<void> check_rfkill(const std::string& interface, const std::filesystem::path& devices) {
  std::error_code failed;
  const std::filesystem::directory_iterator entries{devices / interface / "phy80211", failed};
  for (const auto& entry : entries) {
    if (!entry.path().filename().string().starts_with("rfkill")) continue;
    const bool is_hard = first_word(entry.path() / "hard") == "1";
    if (!is_hard && first_word(entry.path() / "soft") != "1") continue;
    return Error{ExitCode::io_unavailable, "use " + interface,
                 is_hard ? "a switch of the machine keeps its radio off (rfkill)"
                         : "its radio is switched off (rfkill, airplane mode)",
                 is_hard ? "Use that switch; 'rfkill list' shows it" : "rfkill unblock wifi", 0};
  }
  return success();
}

Result<Supplicant> open_radio(const std::string& interface) {
  ONEHOP_TRY(supplicant, Supplicant::open({.interface = interface}));
  ONEHOP_TRYV(check_rfkill(supplicant.interface()));
  ONEHOP_TRYV(supplicant.name_device(host_name()));
  return supplicant;
}

Progress progress_for(const tool::Reporter& reporter) {
  return {.on_peer =
              [&reporter](const Peer& peer) {
                reporter.event("peer", peer_json(peer));
                reporter.say(peer_text(peer));
              },
          .on_pin =
              [&reporter](const std::string& pin) {
                reporter.event("pin", {{"pin", pin}});
                reporter.say("PIN to be entered on the other machine: " + pin);
              },
          .on_text = [&reporter](const std::string& text) { reporter.say(text); }};
}

Result<Formed> form_with_address(Supplicant& supplicant, const Plan& plan,
                                 const tool::Reporter& reporter, int stop_fd) {
  ONEHOP_TRY(is_taken, take_radio(supplicant, stop_fd,
                                  [&reporter](const std::string& text) { reporter.say(text); }));
  auto formed = form(supplicant, plan, reporter, stop_fd);
  if (formed.has_value()) formed.value().is_radio_taken = is_taken;
  if (formed.has_error() && is_taken) (void)leave_networks(supplicant, supplicant.interface());
  return formed;
}

GroupView view_of(const Group& group, const std::string& address) {
  GroupView view{.group = group, .address = address};
  for (const transfer::LocalAddress& local : transfer::local_addresses())
    if (local.interface == group.interface_name && !local.address.is_v6)
      view.ipv4 = local.address.text();
  auto nl80211 = link::Nl80211Socket::open();
  const unsigned ifindex = ::if_nametoindex(group.interface_name.c_str());
  if (nl80211.has_error() || ifindex == 0) return view;
  const auto wifi = nl80211.value().interface(static_cast<int>(ifindex));
  if (wifi.has_value()) view.width_mhz = static_cast<int>(wifi.value().width_mhz.value_or(0));
  return view;
}

void tell_group(const Supplicant& supplicant, const GroupView& view,
                const tool::Reporter& reporter) {
  reporter.event("group", group_json(view));
  reporter.say("group " + group_text(view));
  if (view.group.role == Role::owner && view.width_mhz == 20 && !supplicant.is_wide_possible())
    reporter.warn("the group is 20 MHz wide. A wider one needs wpa_supplicant's control socket: " +
                  supplicant.narrow_reason());
}

}  // namespace onehop::p2p
