// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/p2p/p2p_verbs.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>

#include "control/link/radio.hpp"
#include "control/p2p/form_group.hpp"
#include "control/p2p/group_link.hpp"
#include "control/p2p/network_manager.hpp"
#include "control/p2p/station.hpp"
#include "control/p2p/supplicant.hpp"
#include "engine/base/display_name.hpp"
#include "tools/onehop/p2p/forming.hpp"
#include "tools/onehop/p2p/stop_signals.hpp"
#include "tools/onehop/text/terminal.hpp"

namespace onehop::p2p {

namespace {

/// Whether somebody answers is told to the user, and is no error. The other end needs a second or
/// two for its own address, and more where it is busy.
constexpr Nanos members_limit = 10s;

Nanos nanos_of(double seconds) {
  return std::chrono::duration_cast<Nanos>(std::chrono::duration<double>{seconds});
}

/// plan_of: `pin` is what was entered, or empty.
Plan plan_of(Plan::Task task, const P2pOptions& options, const std::string& pin = {}) {
  Plan plan{.task = task, .peer = options.peer};
  plan.limit = nanos_of(options.seconds);
  plan.is_persistent = options.is_persistent;
  if (!pin.empty()) plan.pairing = {Pairing::Method::enter_pin, pin};
  if (options.is_pin_shown)
    plan.pairing = {Pairing::Method::show_pin, make_pin(std::random_device{}())};
  plan.owner_intent = options.owner_intent.value_or(task == Plan::Task::accept ? 15 : 0);
  if (options.frequency != 0)
    plan.frequencies = {options.frequency};
  else if (task == Plan::Task::host)
    plan.frequencies = host_bands();
  else if (plan.owner_intent >= likely_owner_intent)
    plan.frequencies = owner_channels();
  return plan;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void tell_members(const Group& group, const tool::Reporter& reporter, int stop_fd) {
  const auto members = wait_for_members(group.interface_name, members_limit, stop_fd);
  if (members.has_error()) return reporter.warn(members.error().message());
  for (const std::string& member : members.value()) {
    reporter.event("member", {{"interface", group.interface_name}, {"address", member}});
    reporter.say(fmt::format("the other end is [{}%{}]", member, group.interface_name));
  }
}

/// Secret: what a verb asks for, and where it may come from.
struct Secret {
  std::string word;  ///< "passphrase"
  const char* variable;
  std::string file;  ///< of --WORD-file
};

/// read_secret takes the first line. It shows in no error.
Result<std::string> read_secret(const Secret& secret) {
  std::string line;
  if (const char* value = std::getenv(secret.variable); secret.file.empty() && value != nullptr) {
    line = value;
  } else if (secret.file.empty()) {
    if (!tool::Terminal::is_there())
      return Error{ExitCode::usage, "read the " + secret.word, "none was given",
                   "Give --" + secret.word + "-file FILE or set " + secret.variable};
    tool::Terminal::print(secret.word + ": ");
    line = tool::Terminal{{}}.wait_line().value_or("");
  } else if (secret.file == "-") {
    std::getline(std::cin, line);
  } else {
    std::ifstream input{secret.file};
    if (!input)
      return errno_error(ExitCode::usage, "open the " + secret.word + " file " + secret.file);
    std::getline(input, line);
  }
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return line;
}

/// Nothing where no PIN is wanted.
Result<std::string> read_pin(const P2pOptions& options) {
  if (check_pin(options.peer).has_value())
    return Error{ExitCode::usage, "take the PIN from the command line",
                 "other users of this machine can read it there",
                 "Write --pin alone and type it when it is asked for, or --pin-file FILE"};
  if (!options.is_pin_entered) return std::string{};
  ONEHOP_TRY(pin, read_secret({"pin", "ONEHOP_PIN", options.pin_file}));
  ONEHOP_TRYV(check_pin(pin));
  return pin;
}

Result<std::string> read_passphrase(const std::string& file) {
  const auto refuse = [](std::string cause, std::string hint) {
    return Error{ExitCode::usage, "read the passphrase", std::move(cause), std::move(hint), 0};
  };
  ONEHOP_TRY(line, read_secret({"passphrase", "ONEHOP_PASSPHRASE", file}));
  // IEEE 802.11-2020 annex J.4.1: 8 to 63 characters.
  if (line.size() < 8 || line.size() > 63)
    return refuse("a WPA2 passphrase has 8 to 63 characters", "Copy it from the other machine");
  return line;
}

Result<void> join_by_passphrase(const P2pOptions& options, const tool::Reporter& reporter) {
  ONEHOP_TRYV(check_rfkill(options.interface));
  ONEHOP_TRY(passphrase, read_passphrase(options.passphrase_file));
  const StopSignals stop;
  const auto say = [&reporter](const std::string& text) { reporter.say(text); };
  ONEHOP_TRY(group, join_network(options.interface, {options.ssid, passphrase},
                                 nanos_of(options.seconds), stop.fd(), say));
  const auto address = wait_for_link_local(group.interface_name, address_limit, stop.fd());
  if (address.has_error()) {
    ONEHOP_TRY(supplicant, Supplicant::open({.needs_p2p = false}));
    (void)leave_networks(supplicant, group.interface_name);
    return address.error();
  }
  const GroupView view = view_of(group, address.value());
  reporter.event("group", group_json(view));
  reporter.say("joined " + group_text(view));
  tell_members(group, reporter, stop.fd());
  return success();
}

/// negotiate is connect, accept and join: a group, an address, and who is there.
Result<void> negotiate(const P2pOptions& options, Plan::Task task, bool is_join,
                       const tool::Reporter& reporter) {
  ONEHOP_TRY(pin, read_pin(options));
  Plan plan = plan_of(task, options, pin);
  plan.is_join = is_join;
  const StopSignals stop;
  ONEHOP_TRY(supplicant, open_radio(options.interface));
  ONEHOP_TRY(formed, form_with_address(supplicant, plan, reporter, stop.fd()));
  const Group& group = formed.group;
  tell_group(supplicant, view_of(group, formed.address), reporter);
  tell_members(group, reporter, stop.fd());
  return success();
}

}  // namespace

Result<void> check_pin(const std::string& pin) {
  const auto refuse = [](const char* cause) {
    return Error{ExitCode::usage, "read the pin", cause, "Type it again"};
  };
  const bool is_number = std::ranges::all_of(pin, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number || (pin.size() != 4 && pin.size() != 8)) return refuse("it has 8 digits, or 4");
  if (pin.size() == 8 && make_pin(static_cast<unsigned>(std::stoul(pin) / 10)) != pin)
    return refuse("its last digit does not fit the others");
  return success();
}

Result<void> show_status(const P2pOptions& options, const tool::Reporter& reporter) {
  ONEHOP_TRY(supplicant, Supplicant::open({.interface = options.interface}));
  ONEHOP_TRY(name, supplicant.device_name());
  const std::string& interface = supplicant.interface();
  ONEHOP_TRY(groups, supplicant.groups());
  const auto facts = link::read_radio(interface);
  const bool is_connected = supplicant.is_connected(), is_wide = supplicant.is_wide_possible();
  reporter.event("radio", {{"interface", interface},
                           {"name", name},
                           {"channels_beside_station",
                            facts.has_value() ? tool::Json(facts.value().channels_beside_station)
                                              : tool::Json(nullptr)},
                           {"is_connected", is_connected},
                           {"is_wide_possible", is_wide}});
  if (!options.output.is_json) {
    print(fmt::format("radio {}: Wi-Fi Direct, seen by others as '{}'\n", interface,
                      display_name(name)));
    print(fmt::format("  {}{}\n",
                      facts.has_value() ? link::radio_text(facts.value()) : facts.error().message(),
                      is_connected ? "; it is in one now" : ""));
    if (is_managed(supplicant.bus(), interface))
      print("  NetworkManager has it, and lets go of it for a group: its network goes meanwhile\n");
    print(is_wide ? "  groups up to 80 MHz wide\n"
                  : "  groups 20 MHz wide: " + supplicant.narrow_reason() + "\n");
  }
  for (const Group& group : groups) {
    const auto found = wait_for_link_local(group.interface_name, Nanos{0}, -1);
    const GroupView view = view_of(group, found.has_value() ? found.value() : "");
    reporter.event("group", group_json(view));
    if (!options.output.is_json) print("group " + group_text(view) + "\n");
  }
  if (groups.empty() && !options.output.is_json) print("no group\n");
  return success();
}

Result<void> find_peers(const P2pOptions& options, const tool::Reporter& reporter) {
  const StopSignals stop;
  ONEHOP_TRY(supplicant, open_radio(options.interface));
  std::size_t found = 0;
  Progress progress = progress_for(reporter);
  if (!options.output.is_json)
    progress.on_peer = [](const Peer& peer) { print(peer_text(peer) + "\n"); };
  progress.on_peer = [&found, show = std::move(progress.on_peer)](const Peer& peer) {
    ++found;
    show(peer);
  };
  const auto done = form_group(supplicant, plan_of(Plan::Task::find, options), progress, stop.fd());
  // Ctrl-C ends a search as its time does.
  if (done.has_error() && done.error().code != ExitCode::interrupted) return done.error();
  if (found > 0) return success();
  return Error{ExitCode::peer_unreachable, "find peers",
               fmt::format("none answered in {:g} s", options.seconds),
               "Run 'onehop p2p accept' or 'onehop recv --p2p' on the other machine: a device is "
               "found while it searches or listens itself"};
}

Result<void> connect_peer(const P2pOptions& options, const tool::Reporter& reporter) {
  return negotiate(options, Plan::Task::connect, false, reporter);
}

Result<void> accept_peer(const P2pOptions& options, const tool::Reporter& reporter) {
  return negotiate(options, Plan::Task::accept, false, reporter);
}

Result<void> join_group(const P2pOptions& options, const tool::Reporter& reporter) {
  if (!options.ssid.empty()) return join_by_passphrase(options, reporter);
  return negotiate(options, Plan::Task::connect, true, reporter);
}

Result<void> host_group(const P2pOptions& options, const tool::Reporter& reporter) {
  ONEHOP_TRY(pin, read_pin(options));
  const StopSignals stop;
  ONEHOP_TRY(supplicant, open_radio(options.interface));
  ONEHOP_TRY(formed, form_with_address(supplicant, plan_of(Plan::Task::host, options), reporter,
                                       stop.fd()));
  const Group& group = formed.group;
  if (options.is_button || !pin.empty()) {
    const Pairing pairing{pin.empty() ? Pairing::Method::button : Pairing::Method::enter_pin, pin};
    if (auto done = supplicant.authorize(group, pairing); done.has_error()) {
      (void)supplicant.remove_group(group.path);
      if (formed.is_radio_taken) (void)leave_networks(supplicant, supplicant.interface());
      return done.error();
    }
  }
  const GroupView view = view_of(group, formed.address);
  tell_group(supplicant, view, reporter);
  reporter.event("network", {{"ssid", group.ssid}, {"passphrase", group.passphrase}});
  if (options.output.is_json) return success();
  const std::string text = wifi_text(group.ssid, group.passphrase);
  print(fmt::format("\n{}\n  SSID        {}\n  passphrase  {}\n  {}\n\n",
                    ::isatty(STDOUT_FILENO) != 0 ? qr_code(text) : "", group.ssid, group.passphrase,
                    text));
  print(fmt::format("Here: onehop recv --iface {}\n", group.interface_name));
  return success();
}

Result<void> leave_groups(const P2pOptions& options, const tool::Reporter& reporter) {
  ONEHOP_TRY(supplicant,
             Supplicant::open(
                 {.interface = options.interface, .needs_p2p = false, .needs_interface = false}));
  supplicant.stop_find();
  supplicant.cancel();
  (void)supplicant.announce(false);  // of an `accept` that was killed
  ONEHOP_TRY(groups, supplicant.groups());
  for (const Group& group : groups) {
    ONEHOP_TRYV(supplicant.remove_group(group.path));
    reporter.event("left", {{"interface", group.interface_name}, {"ssid", group.ssid}});
    reporter.say("left " + display_name(group.ssid) + " on " + group.interface_name);
  }
  ONEHOP_TRY(left, leave_networks(supplicant, ""));
  for (const std::string& interface : left.networks) {
    reporter.event("left", {{"interface", interface}});
    reporter.say("left the network on " + interface);
  }
  for (const std::string& interface : left.radios)
    reporter.say("NetworkManager has " + interface + " again");
  if (groups.empty() && left.networks.empty()) reporter.say("there was no group");
  return success();
}

}  // namespace onehop::p2p
