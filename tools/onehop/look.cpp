// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/look.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "control/session/channel/route.hpp"
#include "engine/base/display_name.hpp"
#include "tools/onehop/devices.hpp"

namespace onehop::tool {

namespace {

constexpr const char* attempt = "look for a receiver";
// A question that is lost is asked again 100 and 300 ms later, and Wi-Fi gives to stations that
// sleep what is sent to all every 100 to 300 ms. Shorter: one that answers late is not in the list.
constexpr Nanos look_span = 400ms;
// After the first answer of one that came late, for others like it, and for what we send ourselves.
constexpr Nanos settle_span = 250ms;
// After the answer of the paired device that is meant, for its other ways.
constexpr Nanos ways_span = 25ms;
constexpr Nanos no_wait{-1};

std::string link_names(const std::vector<find::Link>& links) {
  std::string names;
  for (const find::Link& link : links)
    if (link.has_carrier) names += (names.empty() ? "" : ", ") + link.name;
  return names;
}

/// detour_of: a VPN has the routes to a subnet of that link.
std::string detour_of(const find::Link& link) {
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

}  // namespace

std::string medium_text(find::Medium medium) {
  return medium == find::Medium::wifi ? "Wi-Fi" : "cable";
}

std::string place_text(const find::Way& way) {
  return fmt::format("{}, {}, {}", way.interface, medium_text(way.medium),
                     way.is_one_hop ? "one hop" : "behind a gateway");
}

Look::Look(const Options& options, const Reporter& reporter)
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
          [this] { note_new(); }},
      has_hints_{options.has_hints} {}

Result<std::vector<find::Receiver>> Look::run(std::optional<Nanos> limit) {
  interrupts_.start([this] {
    is_interrupted_ = true;
    io_.stop();
  });
  questioner_.start();
  if (has_hints_) ask_avahi();
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

std::string Look::hindered() const {
  const auto& links = questioner_.links();
  if (link_names(links).empty())
    return "no link is up: plug in a cable, or join the network of the other machine";
  std::string text;
  const auto add = [&text](const std::string& one) {
    if (!one.empty()) text += (text.empty() ? "" : "; ") + one;
  };
  for (const find::Link& link : links) {
    if (!link.has_carrier) continue;
    const auto refused = questioner_.refused().find(link.name);
    if (refused != questioner_.refused().end())
      add(fmt::format("this machine lets no question out on {} ({})", link.name, refused->second));
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

Error Look::nobody(const std::string& more) const {
  const std::string where = link_names(questioner_.links());
  std::string cause = where.empty() ? "" : "nobody answers on " + where;
  for (const std::string& one : {hindered(), more})
    if (!one.empty()) cause += (cause.empty() ? "" : "; ") + one;
  return {ExitCode::peer_unreachable, name_.empty() ? attempt : "find " + display_name(name_),
          cause,
          "Start `onehop recv` there, and let UDP and TCP port 7411 through its firewall; or "
          "give a numeric address with --to"};
}

#if ONEHOP_HAS_BUS
void Look::ask_avahi() {
  browser_ = find::AvahiBrowser::open(
      io_, {.is_known =
                [this](const find::AvahiBrowser::Hint& hint) {
                  return questioner_.receivers().has(hint.instance, hint.place);
                },
            .on_there =
                [this](const find::AvahiBrowser::Hint& hint) {
                  find::Answer said;
                  said.instance = hint.instance;
                  said.port = hint.place.port;
                  said.name = hint.name;
                  questioner_.note_hint(said, hint.place, hint.ifindex);
                }});
}
#else
void Look::ask_avahi() {}
#endif

/// Who has answered is there; whom Avahi alone knows is tested before he is listed.
void Look::end_first_look(std::optional<Nanos> limit) {
#if ONEHOP_HAS_BUS
  if (browser_ && limit != no_wait && browser_->test())
    return after(settle_timer_, settle_span, [this, limit] { wait_on(limit); });
#endif
  wait_on(limit);
}

void Look::wait_on(std::optional<Nanos> limit) {
  if (!questioner_.receivers().is_empty() || limit == no_wait) return io_.stop();
  is_late_ = true;
  questioner_.test_reach();
  after(settle_timer_, settle_span, [this] { say_waiting(); });
  if (limit) after(end_timer_, std::max(*limit - look_span, settle_span), [this] { io_.stop(); });
}

void Look::say_waiting() {
  const std::string where = link_names(questioner_.links()), why = hindered();
  if (!where.empty())
    reporter_.say("nobody answers on " + where + " yet: run 'onehop recv' on the other machine");
  if (!why.empty()) reporter_.say("What may hinder it: " + why);
}

void Look::note_new() {
  const auto found = questioner_.receivers().ranked();
  const bool has_device =
      is_device_enough_ &&
      std::ranges::any_of(found, [](const find::Receiver& one) { return !one.device.empty(); });
  if (has_device && !std::exchange(is_found_, true))
    after(end_timer_, ways_span, [this] { io_.stop(); });
  if (!std::exchange(is_late_, false)) return;
  after(settle_timer_, settle_span, [this] { io_.stop(); });
}

std::string Look::links() const { return link_names(questioner_.links()); }

}  // namespace onehop::tool
