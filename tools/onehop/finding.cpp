// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/finding.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

#include "control/session/channel/connect.hpp"
#include "control/transfer/port/local_address.hpp"
#include "control/transfer/port/ports.hpp"
#include "engine/base/display_name.hpp"
#include "tools/onehop/devices.hpp"
#include "tools/onehop/look.hpp"
#include "tools/onehop/preflight.hpp"
#include "tools/onehop/text/terminal.hpp"

namespace onehop::tool {

namespace {

using find::Receiver;
using find::Way;

constexpr std::size_t listed_max = 16;  // on the screen; programs get more
constexpr std::size_t told_max = 256;   // to programs

/// to_of is what follows --to on this machine.
std::string to_of(const Way& way, std::uint16_t port) {
  if (port != transfer::default_port) return onehop::Endpoint{way.address, port}.text();
  return way.address.text();
}

Json json_of(const std::vector<Receiver>& receivers) {
  Json list = Json::array();
  for (const Receiver& one : receivers) {
    if (list.size() == told_max) break;
    Json ways = Json::array();
    for (const Way& way : one.ways)
      ways.push_back({{"to", to_of(way, one.port)},
                      {"interface", way.interface},
                      {"medium", medium_text(way.medium)},
                      {"is_one_hop", way.is_one_hop}});
    list.push_back({{"name", display_name(one.name)},
                    {"device", one.device.empty() ? Json{} : Json(one.device)},
                    {"has_answered", !one.is_hint},
                    {"ways", std::move(ways)}});
  }
  return {{"count", receivers.size()}, {"receivers", std::move(list)}};
}

std::vector<std::string> lines_of(const std::vector<Receiver>& receivers) {
  std::vector<std::string> lines;
  for (const Receiver& one : receivers) {
    if (lines.size() == listed_max) break;
    const Way& way = one.ways.front();
    const std::string paired = one.device.empty() ? "" : "paired as " + one.device + ", ";
    lines.push_back(fmt::format("{}  {}  ({}{}{})", display_name(one.name), to_of(way, one.port),
                                paired, place_text(way), one.is_hint ? ", seen by Avahi" : ""));
  }
  return lines;
}

/// choose has the person type a number. Nothing: he wants to look again.
Result<std::optional<std::size_t>> choose(const std::vector<Receiver>& receivers) {
  const std::vector<std::string> lines = lines_of(receivers);
  const std::string more =
      receivers.size() == lines.size()
          ? ""
          : fmt::format("and {} more: name yours with --to", receivers.size() - lines.size());
  if (!Terminal::is_there()) {
    std::string cause = fmt::format("{} answer: ", receivers.size());
    for (const std::string& line : lines) cause += (&line == lines.data() ? "" : "; ") + line;
    return Error{ExitCode::usage, "choose a receiver", cause + (more.empty() ? "" : "; " + more),
                 "Name one with --to: its name, or its address where two have the same name"};
  }
  Terminal::discard_input();
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += fmt::format("{:>3}  {}\n", i + 1, lines[i]);
  tell(fitted(text + (more.empty() ? "" : "     " + more + "\n")));
  for (;;) {
    Terminal::print(fmt::format("Send to (1 to {}; Enter looks again): ", lines.size()));
    const auto typed = Terminal{std::stop_token{}}.wait_line();
    if (!typed)
      return Error{ExitCode::interrupted, "choose a receiver", "the terminal is gone", ""};
    if (typed->empty()) return std::optional<std::size_t>{};
    std::size_t number = 0;
    const char* const end = typed->data() + typed->size();
    const auto read = std::from_chars(typed->data(), end, number);
    if (read.ec == std::errc{} && read.ptr == end && number >= 1 && number <= lines.size())
      return std::optional{number - 1};
  }
}

void say_found(const Receiver& chosen, const Reporter& reporter) {
  const Way& way = chosen.ways.front();
  const std::string paired = chosen.device.empty() ? "" : ", the paired device " + chosen.device;
  reporter.say(fmt::format("found {}{}: {} ({}{})", display_name(chosen.name), paired,
                           to_of(way, chosen.port), place_text(way),
                           chosen.is_hint ? ", seen by Avahi" : ""));
}

void take(const Receiver& chosen, SendCommand& command, const Reporter& reporter) {
  const Way& way = chosen.ways.front();
  api::SendOptions& options = command.transfer;
  command.device = chosen.device;
  command.found_as = chosen.name;
  options.to = to_of(way, chosen.port);
  say_found(chosen, reporter);
  // Where a VPN has taken the subnet's routes, the answer came over the link all the same.
  const auto route = session::find_route(way.address);
  if (options.common.interface.empty() && route && route.value().link.name != way.interface)
    options.common.interface = way.interface;
}

}  // namespace

bool is_looked_for(const std::string& to) {
  return to.find(':') == std::string::npos && !IpAddress::parse(to) && to != "localhost";
}

namespace {

/// devices_among: whom of the paired devices an answer may be of. With a code nobody's name counts,
/// and where a device is named no other one does.
Result<std::vector<pair::Peer>> devices_among(const SendCommand& command,
                                              const std::optional<User>& user) {
  if (has_code(command.output) || device_folder(user).empty()) return std::vector<pair::Peer>{};
  ONEHOP_TRY(book, read_peers(user));
  const pair::Peer* const named = book.find(command.transfer.to);
  return named == nullptr ? book.peers() : std::vector{*named};
}

/// only_device keeps the paired devices where there are some. What has the name of one, and is
/// none, is not the machine that is meant.
Result<std::vector<Receiver>> only_device(const std::vector<Receiver>& found,
                                          const std::string& named) {
  std::vector<Receiver> devices;
  std::ranges::copy_if(found, std::back_inserter(devices),
                       [](const Receiver& one) { return !one.device.empty(); });
  if (!devices.empty()) return devices;
  if (named.empty()) return found;
  return Error{ExitCode::authentication_failed, "find " + named,
               "what answers under that name is not the device that was paired so: its key has "
               "changed, or it is another machine",
               "If it was set up anew: onehop peers forget " + named +
                   ", and pair again. By its words all the same: --to ADDRESS"};
}

}  // namespace

Result<std::string> find_pairing(const PairCommand& command, const Reporter& reporter) {
  ONEHOP_TRYV(check_interface(command.interface));
  for (;;) {
    Look look{{.interface = command.interface, .name = command.to, .is_pairing = true}, reporter};
    ONEHOP_TRY(found, look.run(Look::no_wait));
    if (found.empty()) return std::string{};
    std::optional<std::size_t> chosen = 0;
    if (found.size() > 1) {
      ONEHOP_TRY(number, choose(found));
      chosen = number;
    }
    if (!chosen) continue;
    say_found(found[*chosen], reporter);
    return to_of(found[*chosen].ways.front(), found[*chosen].port);
  }
}

Result<void> find_receiver(SendCommand& command, const std::optional<User>& user,
                           const Reporter& reporter) {
  api::SendOptions& options = command.transfer;
  if (!command.device.empty() || !is_looked_for(options.to)) return success();
  ONEHOP_TRYV(check_interface(options.common.interface));
  const bool is_named = !options.to.empty();
  std::optional<Nanos> limit = Nanos{static_cast<Nanos::rep>(options.wait_seconds * 1e9)};
  if (!is_named && !command.has_wait && Terminal::is_there()) limit.reset();
  ONEHOP_TRY(peers, devices_among(command, user));
  const bool is_device = is_named && std::ranges::count(peers, options.to, &pair::Peer::name) > 0;
  std::string unknown;  // why name service does not know it
  for (bool is_first = true;;) {
    Look look{{.interface = options.common.interface,
               .name = options.to,
               .peers = peers,
               .has_hints = !is_named},
              reporter};
    // Who answers to a name comes before name service, which may take long to say no.
    ONEHOP_TRY(answered, look.run(is_named && is_first && !is_device ? Look::no_wait : limit));
    if (is_device) is_first = false;  // name service does not know it
    auto found = answered;
    if (found.empty() && is_named && std::exchange(is_first, false)) {
      const auto route = session::find_route_to(options.to, options.common.interface);
      if (route || !look.has_links()) return success();
      unknown = "name service: " + route.error().cause;
      continue;
    }
    if (found.empty()) return look.nobody(unknown);
    reporter.event("receivers", json_of(found));
    ONEHOP_TRY(meant, only_device(found, is_device ? options.to : ""));
    found = std::move(meant);
    std::optional<std::size_t> chosen = 0;
    if (found.size() > 1) {
      ONEHOP_TRY(number, choose(found));
      chosen = number;
    }
    if (!chosen) continue;
    take(found[*chosen], command, reporter);
    return success();
  }
}

Result<std::function<std::string()>> finder_of(const SendCommand& command,
                                               const std::optional<User>& user,
                                               const Reporter& reporter) {
  if (command.found_as.empty()) return std::function<std::string()>{};
  std::vector<pair::Peer> peers;
  if (!command.device.empty()) {
    ONEHOP_TRY(book, read_peers(user));
    if (const pair::Peer* const peer = book.find(command.device)) peers.push_back(*peer);
  }
  return std::function{[interface = command.transfer.common.interface, name = command.found_as,
                        device = command.device, peers, &reporter]() -> std::string {
    // A device is known by more than its name, which may have changed.
    Look look{{interface, device.empty() ? name : "", peers}, reporter};
    const auto found = look.run(Look::no_wait);
    if (found.has_error()) return {};
    for (const Receiver& one : found.value())
      if (one.device == device) return to_of(one.ways.front(), one.port);
    return {};
  }};
}

std::optional<find::Responder::Options> answering_of(const RecvCommand& command) {
  const api::ReceiveOptions& options = command.transfer;
  const auto listen = transfer::parse_endpoint(options.listen);
  if (command.is_hidden || options.common.io == "dpdk" || !listen) return std::nullopt;
  find::Responder::Options answering{.name = shown_name(command.name),
                                     .interface = options.common.interface};
  if (!transfer::listens_on_all(listen.value())) {
    answering.address = IpAddress::parse(listen.value().host);
  } else if (const transfer::PortKind* const kind = transfer::port_kind(options.common.io);
             kind != nullptr && kind->is_bound) {
    // It is bound to one address, which is the only one here.
    const auto ways =
        transfer::reachable(transfer::local_addresses(), listen.value(), options.common.interface);
    if (!ways.empty()) answering.address = ways.front().address;
  }
  answering.has_v6 = listen.value().host != "0.0.0.0";
  return answering;
}

}  // namespace onehop::tool
