// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/finding.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

#include "control/find/questioner.hpp"
#include "control/session/channel/connect.hpp"
#include "control/transfer/port/local_address.hpp"
#include "control/transfer/port/ports.hpp"
#include "engine/base/display_name.hpp"
#include "tools/onehop/devices.hpp"
#include "tools/onehop/preflight.hpp"
#include "tools/onehop/signals.hpp"
#include "tools/onehop/text/terminal.hpp"

namespace onehop::tool {

namespace {

using find::Link;
using find::Receiver;
using find::Way;

constexpr const char* attempt = "look for a receiver";
// A question that is lost is asked again 100 and 300 ms later, and Wi-Fi gives to stations that
// sleep what is sent to all every 100 to 300 ms. Shorter: one that answers late is not in the list.
constexpr Nanos look_span = 400ms;
// After the first answer of one that came late, for others like it, and for what we send ourselves.
constexpr Nanos settle_span = 250ms;
// After the answer of the paired device that is meant, for its other ways.
constexpr Nanos ways_span = 25ms;
constexpr Nanos no_wait{-1};
constexpr std::size_t listed_max = 16;  // on the screen; programs get more
constexpr std::size_t told_max = 256;   // to programs

std::string medium_text(find::Medium medium) {
  return medium == find::Medium::wifi ? "Wi-Fi" : "cable";
}

/// to_of is what follows --to on this machine.
std::string to_of(const Way& way, std::uint16_t port) {
  if (port != transfer::default_port) return onehop::Endpoint{way.address, port}.text();
  return way.address.text();
}

std::string place_text(const Way& way) {
  return fmt::format("{}, {}, {}", way.interface, medium_text(way.medium),
                     way.is_one_hop ? "one hop" : "behind a gateway");
}

std::string link_names(const std::vector<Link>& links) {
  std::string names;
  for (const Link& link : links)
    if (link.has_carrier) names += (names.empty() ? "" : ", ") + link.name;
  return names;
}

/// detour_of: a VPN has the routes to a subnet of that link.
std::string detour_of(const Link& link) {
  for (const find::Subnet& subnet : link.subnets) {
    IpAddress neighbour = subnet.address;
    neighbour.bytes[neighbour.size_bytes() - 1] ^= std::byte{1};
    if (neighbour.is_link_local() || !link.is_near(neighbour)) continue;
    const auto route = session::find_route(neighbour);
    const auto near = route ? session::find_nearer(neighbour, route.value()) : std::nullopt;
    if (near)
      return fmt::format("the route to {}, the subnet of {}, leads {}, as a VPN's does",
                         near->subnet, link.name, session::route_text(route.value()));
  }
  return {};
}

/// Look asks until somebody answers, or the time is over.
class Look {
 public:
  struct Options {
    std::string interface, name;
    std::vector<pair::Peer> peers;  ///< that answers may be of
    bool is_pairing = false;
  };
  Look(const Options& options, const Reporter& reporter)
      : reporter_{reporter},
        name_{options.name},
        // One of several may be meant, and the others may answer later.
        is_device_enough_{options.peers.size() == 1},
        interrupts_{io_},
        settle_timer_{io_},
        end_timer_{io_},
        questioner_{
            io_,
            {.interface = options.interface,
             .name = name_,
             .shown = display_name,
             .is_pairing = options.is_pairing,
             .device_of = [peers = options.peers](
                              const find::Answer& answer) { return device_of(peers, answer); }},
            [this] { note_new(); }} {}

  /// run looks for look_span, and where nobody answers on until `limit`; nothing: for ever.
  Result<std::vector<Receiver>> run(std::optional<Nanos> limit) {
    interrupts_.start([this] {
      is_interrupted_ = true;
      io_.stop();
    });
    questioner_.start();
    if (has_links() || limit != no_wait)
      after(settle_timer_, look_span, [this, limit] { end_first_look(limit); });
    else
      io_.stop();
    io_.run();
    interrupts_.stop();
    if (is_interrupted_)
      return Error{ExitCode::interrupted, attempt, "interrupted before anything was sent", ""};
    return questioner_.receivers().ranked();
  }

  bool has_links() const { return !questioner_.links().empty(); }

  /// hindered says what can be seen of why nobody answers; empty: nothing.
  std::string hindered() const {
    const auto& links = questioner_.links();
    if (link_names(links).empty())
      return "no link is up: plug in a cable, or join the network of the other machine";
    std::string text;
    const auto add = [&text](const std::string& one) {
      if (!one.empty()) text += (text.empty() ? "" : "; ") + one;
    };
    for (const Link& link : links) {
      if (!link.has_carrier) continue;
      const auto refused = questioner_.refused().find(link.name);
      if (refused != questioner_.refused().end())
        add(fmt::format("this machine lets no question out on {} ({})", link.name,
                        refused->second));
      else if (!questioner_.is_reached(link))
        add(
            fmt::format("a firewall of this machine keeps answers out on {} (they come from UDP "
                        "port {})",
                        link.name, find::group_port));
      add(detour_of(link));
      if (link.medium == find::Medium::wifi)
        add("the access point of " + link.name + " may keep its stations apart");
    }
    return text;
  }
  Error nobody(const std::string& more) const {
    const std::string where = link_names(questioner_.links());
    std::string cause = where.empty() ? "" : "nobody answers on " + where;
    for (const std::string& one : {hindered(), more})
      if (!one.empty()) cause += (cause.empty() ? "" : "; ") + one;
    return {ExitCode::peer_unreachable, name_.empty() ? attempt : "find " + display_name(name_),
            cause,
            "Start `onehop recv` there, and let UDP and TCP port 7411 through its firewall; or "
            "give a numeric address with --to"};
  }

 private:
  template <class Then>
  void after(boost::asio::steady_timer& timer, Nanos span, Then then) {
    timer.expires_after(span);
    timer.async_wait([then](const boost::system::error_code& stopped) {
      if (!stopped) then();
    });
  }
  void end_first_look(std::optional<Nanos> limit) {
    if (!questioner_.receivers().is_empty() || limit == no_wait) return io_.stop();
    is_late_ = true;
    questioner_.test_reach();
    after(settle_timer_, settle_span, [this] { say_waiting(); });
    if (limit) after(end_timer_, std::max(*limit - look_span, settle_span), [this] { io_.stop(); });
  }
  void say_waiting() {
    const std::string where = link_names(questioner_.links()), why = hindered();
    if (!where.empty())
      reporter_.say("nobody answers on " + where + " yet: run 'onehop recv' on the other machine");
    if (!why.empty()) reporter_.say("What may hinder it: " + why);
  }
  void note_new() {
    const auto found = questioner_.receivers().ranked();
    const bool has_device =
        is_device_enough_ &&
        std::ranges::any_of(found, [](const Receiver& one) { return !one.device.empty(); });
    if (has_device && !std::exchange(is_found_, true))
      after(end_timer_, ways_span, [this] { io_.stop(); });
    if (!std::exchange(is_late_, false)) return;
    after(settle_timer_, settle_span, [this] { io_.stop(); });
  }

  const Reporter& reporter_;
  const std::string name_;
  const bool is_device_enough_;
  bool is_found_ = false;
  boost::asio::io_context io_;
  Interrupts interrupts_;
  boost::asio::steady_timer settle_timer_, end_timer_;
  find::Questioner questioner_;
  bool is_late_ = false;  // the first look is over, without an answer
  bool is_interrupted_ = false;
};

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
    lines.push_back(fmt::format("{}  {}  ({}{})", display_name(one.name), to_of(way, one.port),
                                paired, place_text(way)));
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
  reporter.say(fmt::format("found {}{}: {} ({})", display_name(chosen.name), paired,
                           to_of(way, chosen.port), place_text(way)));
}

void take(const Receiver& chosen, SendCommand& command, const Reporter& reporter) {
  const Way& way = chosen.ways.front();
  api::SendOptions& options = command.transfer;
  command.device = chosen.device;
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
    ONEHOP_TRY(found, look.run(no_wait));
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
    Look look{{options.common.interface, options.to, peers}, reporter};
    // Who answers to a name comes before name service, which may take long to say no.
    ONEHOP_TRY(answered, look.run(is_named && is_first && !is_device ? no_wait : limit));
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
