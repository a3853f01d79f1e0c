// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// On a link that DPDK owns whole: who finds the peer's link address, and when. And the search for a
// TX ring's fill.
#include <catch2/catch.hpp>

#include <array>

#include "engine/port/dpdk/peer_mac.hpp"

namespace onehop::dpdk {
namespace {

NeighbourHost host(int last) {
  return {.mac = {std::byte{2}, {}, {}, {}, {}, static_cast<std::byte>(last)},
          .ip = {std::byte{10}, {}, {}, static_cast<std::byte>(last)}};
}

struct End {
  explicit End(int last) : mac{host(last), false} {}
  PeerMac mac;
  std::array<std::byte, neighbour_bytes_max> out{};

  std::span<const std::byte> ask(Instant now) { return std::span{out}.first(mac.ask(now, out)); }
  std::span<const std::byte> hear(std::span<const std::byte> frame) {
    return std::span{out}.first(mac.on_frame(frame, out));
  }
};

}  // namespace

TEST_CASE("one question tells both ends, and is repeated until there is an answer",
          "[port][dpdk]") {
  End a{1}, b{2};
  CHECK_FALSE(a.mac.is_due(Instant{1h}));  // nobody is asked for before the peer is known
  a.mac.set_peer(host(2).ip);
  b.mac.set_peer(host(1).ip);
  const Instant now{1h};
  REQUIRE(a.mac.is_due(now));
  const auto question = a.ask(now);
  CHECK_FALSE(a.mac.is_due(now + 1ms));
  CHECK(a.mac.is_due(now + PeerMac::ask_interval));
  const auto answer = b.hear(question);
  REQUIRE_FALSE(answer.empty());
  CHECK(b.mac.mac() == host(1).mac);
  CHECK(a.hear(answer).empty());
  CHECK(a.mac.mac() == host(2).mac);
  CHECK_FALSE(a.mac.is_due(now + 1s));
  CHECK(a.mac.is_due(now + PeerMac::confirm_interval));
}

TEST_CASE("strangers are answered where they ask for us, and teach nothing", "[port][dpdk]") {
  End a{1}, stranger{3};
  a.mac.set_peer(host(2).ip);
  stranger.mac.set_peer(host(1).ip);
  CHECK_FALSE(a.hear(stranger.ask(Instant{1h})).empty());
  CHECK_FALSE(a.mac.mac());
  stranger.mac.set_peer(host(4).ip);
  CHECK(a.hear(stranger.ask(Instant{2h})).empty());
}

TEST_CASE("a peer that comes back elsewhere is followed, and another peer is asked for anew",
          "[port][dpdk]") {
  End a{1}, b{2};
  a.mac.set_peer(host(2).ip);
  b.mac.set_peer(host(1).ip);
  (void)a.hear(b.ask(Instant{1h}));
  REQUIRE(a.mac.mac() == host(2).mac);
  End again{9};
  again.mac = PeerMac{{.mac = host(9).mac, .ip = host(2).ip}, false};
  again.mac.set_peer(host(1).ip);
  (void)a.hear(again.ask(Instant{1h}));
  CHECK(a.mac.mac() == host(9).mac);
  a.mac.set_peer(host(2).ip);
  CHECK(a.mac.mac());
  a.mac.set_peer(host(5).ip);
  CHECK_FALSE(a.mac.mac());
  CHECK(a.mac.is_due(Instant{1h}));
}

}  // namespace onehop::dpdk
