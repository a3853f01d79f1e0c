// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// doctor --peer: what passes between this machine and a receiver, each part tried by itself: a
// question to all on the link and its answer, then a connection over each way. What passes and what
// does not tell a firewall from an access point that keeps its stations apart.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "control/find/links.hpp"
#include "control/session/channel/route.hpp"
#include "control/transfer/settings.hpp"
#include "engine/base/display_name.hpp"
#include "engine/base/fd.hpp"
#include "tools/onehop/doctor/doctor.hpp"
#include "tools/onehop/finding.hpp"
#include "tools/onehop/look.hpp"
#include "tools/onehop/preflight.hpp"

namespace onehop::tool {

namespace {

// Wi-Fi gives to stations that sleep what is sent to all every 100 to 300 ms: four questions.
constexpr Nanos reply_span = 2500ms;
// The kernel asks three times, a second apart, who has an address.
constexpr int connect_ms = 4000;
constexpr std::size_t ways_tried_max = 4;

/// connect_to: 0, or as errno why there is no connection. It sends nothing. Blocks for connect_ms.
int connect_to(const Endpoint& to, const std::string& interface) {
  const Fd socket{::socket(to.address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (socket.get() < 0) return errno;
  if (const auto bound = session::bind_to_device(socket.get(), interface); bound.has_error())
    return bound.error().errno_value;
  const SocketAddress there = to.to_sockaddr();
  if (::connect(socket.get(), there.get(), there.size_bytes) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd waiting{socket.get(), POLLOUT, 0};
  if (::poll(&waiting, 1, connect_ms) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

/// is_there: it answered, if only to refuse, or its firewall swallowed what came.
bool is_there(int error) { return error == 0 || error == ECONNREFUSED || error == ETIMEDOUT; }

/// Trial collects what is found out about one peer.
class Trial {
 public:
  Trial(std::string peer, std::string interface)
      : peer_{std::move(peer)}, interface_{std::move(interface)} {}

  Result<Diagnosis> run(const Reporter& reporter) {
    ONEHOP_TRYV(read());
    ONEHOP_TRYV(check_interface(interface_));
    Look look{{.interface = interface_, .name = address_ ? "" : peer_, .peers = {}}, reporter};
    ONEHOP_TRY(found, look.run(reply_span));
    note_question(found, look);
    for (const find::Way& way : ways_) try_way(way);
    if (!out_.is_usable && !lost_on_.empty()) try_gateway();
    return std::move(out_);
  }

 private:
  /// read takes what looks like an address as one; all else is a name.
  Result<void> read() {
    out_.interface = peer_;
    if (is_looked_for(peer_)) return success();
    ONEHOP_TRY(endpoint, transfer::parse_peer(peer_, interface_));
    address_ = IpAddress::parse(endpoint.host);
    port_ = endpoint.port;
    if (!address_)
      return Error{ExitCode::usage, "try " + peer_,
                   "it is neither a receiver's name nor an address",
                   "Give the name that `onehop recv` shows there, or a numeric address"};
    ONEHOP_TRY(route, session::find_route(*address_, interface_));
    find::Way way{.address = *address_, .interface = route.link.name, .is_one_hop = !route.gateway};
    for (const find::Link& link : find::list_links(way.interface)) way.medium = link.medium;
    ways_.push_back(std::move(way));
    return success();
  }

  void note_question(const std::vector<find::Receiver>& found, const Look& look) {
    std::string text;
    std::size_t answers = 0;
    for (const find::Receiver& one : found) {
      const auto is_meant = [this](const find::Way& way) { return way.address == *address_; };
      if (address_ && std::ranges::none_of(one.ways, is_meant)) continue;
      for (const find::Way& way : one.ways) {
        if (++answers <= ways_tried_max) text += (text.empty() ? "" : "; ") + place_text(way);
        if (!address_ && ways_.size() < ways_tried_max) ways_.push_back(way);
      }
      if (!address_) port_ = one.port;
    }
    is_answered_ = answers > 0;
    if (answers > ways_tried_max) text += fmt::format("; {} more", answers - ways_tried_max);
    if (is_answered_) return add("question", Verdict::good, "answered over " + text, true);
    const std::string on = look.links(), why = look.hindered();
    add("question", Verdict::bad,
        fmt::format("no answer{}{}", on.empty() ? "" : " on " + on, why.empty() ? "" : ". " + why),
        false,
        address_ ? "" : "Run `onehop recv` there. Then try its address: doctor --peer ADDRESS");
  }

  void try_way(const find::Way& way) {
    const Endpoint to{way.address, port_};
    const int error = connect_to(to, way.interface);
    const std::string key = "connection", where = fmt::format("{} on {}", to.text(), way.interface);
    if (error == 0) {
      out_.is_usable = true;
      return add(key, Verdict::good, where + " takes connections", 0,
                 is_answered_
                     ? ""
                     : "The question is kept out there (UDP port 7411), or what is sent to "
                       "all does not pass on this link. `onehop send --to ADDRESS` works");
    }
    if (error == ECONNREFUSED)
      return add(key, Verdict::bad, where + " is there and takes no connection", error,
                 "Run `onehop recv` there; a firewall that refuses has to let TCP port 7411 in");
    if (error == ETIMEDOUT)
      return add(key, Verdict::bad,
                 where + (is_answered_ || way.is_one_hop ? " is there, and what comes is dropped"
                                                         : " does not answer"),
                 error, "Let TCP port 7411 in there: `ufw allow 7411`");
    if (error == EHOSTUNREACH && way.is_one_hop) {
      lost_on_ = way.interface;
      is_lost_on_wifi_ = way.medium == find::Medium::wifi;
    }
    add(key, Verdict::bad,
        error == EHOSTUNREACH && way.is_one_hop
            ? fmt::format("nobody says on {} that {} is its own", way.interface, way.address.text())
            : where + ": " + errno_text(error),
        error);
  }

  /// try_gateway tells a link that carries nothing from one that keeps its stations apart.
  void try_gateway() {
    const auto route = session::find_route(*IpAddress::parse("203.0.113.1"), lost_on_);
    if (!route || !route.value().gateway)
      return add("gateway", Verdict::info, "there is none on " + lost_on_ + " to compare with",
                 nullptr, "See that both machines are on the same network, and that it is on");
    const IpAddress& gateway = *route.value().gateway;
    if (!is_there(connect_to({gateway, port_}, lost_on_)))
      return add("gateway", Verdict::bad,
                 fmt::format("{} does not answer on {} either", gateway.text(), lost_on_), false,
                 "Look at this machine's own link first");
    add("gateway", Verdict::good,
        fmt::format("{} answers on {}, so this machine's link works", gateway.text(), lost_on_),
        true,
        is_lost_on_wifi_
            ? "The other machine is off or on another network, or the access point keeps its "
              "stations apart (\"client isolation\" in its settings). Without it: onehop send --p2p"
            : "The other machine is off or on another network, or the switch keeps its ports "
              "apart");
  }

  void add(std::string key, Verdict verdict, std::string text, Json value,
           std::string remedy = {}) {
    out_.findings.push_back({.section = "peer",
                             .key = std::move(key),
                             .verdict = verdict,
                             .text = std::move(text),
                             .value = std::move(value),
                             .remedy = std::move(remedy)});
  }

  const std::string peer_, interface_;
  std::optional<IpAddress> address_;
  std::uint16_t port_ = transfer::default_port;
  std::vector<find::Way> ways_;
  bool is_answered_ = false;
  std::string lost_on_;  // the link on which nobody has the address
  bool is_lost_on_wifi_ = false;
  Diagnosis out_;
};

}  // namespace

Result<Diagnosis> diagnose_peer(const std::string& peer, const std::string& interface,
                                const Reporter& reporter) {
  return Trial{peer, interface}.run(reporter);
}

}  // namespace onehop::tool
