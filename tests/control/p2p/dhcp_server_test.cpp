// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   plain stations get an address and keep it; whatever else is said changes nothing.
// Method: messages made here byte by byte go in, in virtual time; answers are read byte by byte.
// Bounds: exact.
#include "control/p2p/dhcp_server.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "engine/base/byte_codec.hpp"
#include "tests/control/p2p/dhcp_client.hpp"

using namespace onehop;
using namespace onehop::p2p;
using test::DhcpClient;

namespace {

constexpr Ipv4 own = 0xc0a83101, first = own + DhcpServer::pool_offset;
constexpr Ipv4 to_all = 0xffffffff;
constexpr Instant start{1000s};

/// Heard: an answer as a client reads it.
struct Heard {
  DhcpType type{};
  Ipv4 ciaddr = 0, yiaddr = 0, to = 0;
  std::uint32_t xid = 0;
  std::uint16_t flags = 0;
  std::size_t size = 0;
  std::map<unsigned, std::string> options;

  [[nodiscard]] std::uint32_t number(unsigned code) const {
    const auto found = options.find(code);
    if (found == options.end()) return 0;
    REQUIRE(found->second.size() == 4);
    return load_be<std::uint32_t>(std::as_bytes(std::span{found->second}).data());
  }
};

std::optional<Heard> hear(const std::optional<DhcpServer::Answer>& answer) {
  if (!answer) return std::nullopt;
  Heard out{.to = answer->to, .size = answer->size};
  ByteReader in{answer->message()};
  CHECK(in.u32() == 0x02010600);  // BOOTREPLY, Ethernet, 6 bytes, no hops
  out.xid = in.u32();
  CHECK(in.u16() == 0);
  out.flags = in.u16();
  out.ciaddr = in.u32();
  out.yiaddr = in.u32();
  CHECK(in.u64() == 0);
  (void)in.bytes(16 + 64 + 128);
  CHECK(in.u32() == 0x63825363);
  for (unsigned code = in.u8(); code != 255 && in.is_ok(); code = in.u8()) {
    const auto value = in.bytes(in.u8());
    out.options[code] = {reinterpret_cast<const char*>(value.data()), value.size()};
  }
  CHECK(in.is_ok());
  for (const unsigned code : {3U, 6U}) CHECK_FALSE(out.options.contains(code));  // router, DNS
  out.type = static_cast<DhcpType>(out.options[53].at(0));
  CHECK(out.number(54) == own);
  return out;
}

class Link {
 public:
  std::optional<Heard> say(const DhcpClient& client) {
    return hear(server_.answer(now, client.message()));
  }
  /// join is DISCOVER and REQUEST; 0: there was no offer.
  Ipv4 join(DhcpClient client) {
    const auto offer = say(client.discover());
    if (!offer) return 0;
    REQUIRE(offer->type == DhcpType::offer);
    const auto ack = say(client.select(own, offer->yiaddr));
    REQUIRE((ack && ack->type == DhcpType::ack && ack->yiaddr == offer->yiaddr));
    return ack->yiaddr;
  }
  Instant now = start;

 private:
  DhcpServer server_{own};
};

}  // namespace

TEST_CASE("a station asks for an address and gets it", "[control][p2p][dhcp]") {
  Link link;
  const DhcpClient client{7};
  const auto offer = link.say(DhcpClient{client}.discover());
  REQUIRE(offer);
  CHECK(offer->type == DhcpType::offer);
  CHECK(offer->xid == client.xid);
  CHECK(offer->flags == client.flags);
  CHECK(offer->yiaddr == first);
  CHECK(offer->to == to_all);
  CHECK(offer->size >= 300);
  CHECK(offer->number(1) == 0xffffff00);
  CHECK(offer->number(51) == 600);
  const auto ack = link.say(DhcpClient{client}.select(own, first));
  REQUIRE(ack);
  CHECK(ack->type == DhcpType::ack);
  CHECK(ack->yiaddr == first);
  CHECK(ack->number(51) == 600);
}

TEST_CASE("an identifier is sent back, of any length", "[control][p2p][dhcp]") {
  Link link;
  const std::string id(GENERATE(2U, 7U, 255U), 'x');
  const auto offer = link.say(DhcpClient{7}.with_id(id).discover());
  REQUIRE(offer);
  CHECK(offer->options.at(61) == id);
  CHECK(offer->size <= dhcp_reply_bytes_max);
  CHECK_FALSE(link.say(DhcpClient{8}.discover())->options.contains(61));
}

TEST_CASE("who comes back has the same address, under its identifier", "[control][p2p][dhcp]") {
  Link link;
  const Ipv4 address = link.join(DhcpClient{1}.with_id("one"));
  CHECK(link.join(DhcpClient{2}) == address + 1);
  CHECK(link.join(DhcpClient{3}.with_id("one")) == address);  // with another card
  // An identifier that says the hardware address is no other client.
  CHECK(link.join(DhcpClient{2}.with_id(std::string{"\x01\x02\0\0\0\0\x02", 7})) == address + 1);
}

TEST_CASE("a lease is renewed, by unicast, and runs out", "[control][p2p][dhcp]") {
  Link link;
  const Ipv4 address = link.join(DhcpClient{1});
  link.now += DhcpServer::lease_span / 2;
  const auto renewed = link.say(DhcpClient{1}.renew(address));
  REQUIRE(renewed);
  CHECK(renewed->type == DhcpType::ack);
  CHECK(renewed->to == address);
  CHECK(renewed->ciaddr == address);
  link.now += DhcpServer::lease_span - 1s;
  CHECK(link.say(DhcpClient{2}.reboot(address))->type == DhcpType::nak);
  link.now += 2s;
  CHECK(link.say(DhcpClient{2}.reboot(address))->type == DhcpType::ack);
  const auto late = link.say(DhcpClient{1}.renew(address));
  REQUIRE(late);
  CHECK(late->type == DhcpType::nak);
  CHECK(late->to == to_all);
  CHECK(late->yiaddr == 0);
  CHECK(late->ciaddr == 0);
  CHECK_FALSE(late->options.contains(51));
}

TEST_CASE("a group that was started again grants what a station remembers",
          "[control][p2p][dhcp]") {
  Link link;
  CHECK(link.say(DhcpClient{1}.reboot(first + 5))->type == DhcpType::ack);
  CHECK(link.say(DhcpClient{2}.reboot(first + 5))->type == DhcpType::nak);
  for (const Ipv4 elsewhere : {own, own + 1, first - 1, first + Ipv4{DhcpServer::pool_addresses},
                               Ipv4{0x0a000001}, Ipv4{0}, to_all})
    CHECK(link.say(DhcpClient{3}.reboot(elsewhere))->type == DhcpType::nak);
  // It takes another one: the first is free for others.
  CHECK(link.say(DhcpClient{1}.reboot(first + 6))->type == DhcpType::ack);
  CHECK(link.say(DhcpClient{2}.reboot(first + 5))->type == DhcpType::ack);
}

TEST_CASE("a request for another server takes the offer back and gets no answer",
          "[control][p2p][dhcp]") {
  Link link;
  REQUIRE(link.say(DhcpClient{1}.discover())->yiaddr == first);
  CHECK_FALSE(link.say(DhcpClient{1}.select(own + 1, first)));
  CHECK(link.say(DhcpClient{2}.reboot(first))->type == DhcpType::ack);
  // A bound lease stays: nobody's word about another server ends it.
  CHECK_FALSE(link.say(DhcpClient{2}.select(own + 1, first)));
  CHECK(link.say(DhcpClient{3}.reboot(first))->type == DhcpType::nak);
}

TEST_CASE("an address that was not offered is refused", "[control][p2p][dhcp]") {
  Link link;
  REQUIRE(link.say(DhcpClient{1}.discover())->yiaddr == first);
  CHECK(link.say(DhcpClient{1}.select(own, first + 1))->type == DhcpType::nak);
  CHECK(link.say(DhcpClient{2}.select(own, first + 1))->type == DhcpType::nak);
  CHECK(link.say(DhcpClient{2}.select(own, first))->type == DhcpType::nak);
}

TEST_CASE("a wish is granted where the address is free", "[control][p2p][dhcp]") {
  Link link;
  CHECK(link.say(DhcpClient{1}.discover(first + 9))->yiaddr == first + 9);
  CHECK(link.say(DhcpClient{2}.discover(first + 9))->yiaddr == first);
  CHECK(link.say(DhcpClient{3}.discover(own))->yiaddr == first + 1);
}

TEST_CASE("N7 I6 many stations: a full pool is silent, and offers alone do not fill it",
          "[control][p2p][dhcp]") {
  Link link;
  std::set<Ipv4> given;
  for (std::uint64_t mac = 0; mac < DhcpServer::pool_addresses; ++mac)
    given.insert(link.join(DhcpClient{mac}));
  CHECK(given.size() == DhcpServer::pool_addresses);
  CHECK(*given.begin() == first);
  for (std::uint64_t mac = 1000; mac < 9000; ++mac) {
    CHECK_FALSE(link.say(DhcpClient{mac}.discover()));
    CHECK(link.say(DhcpClient{mac}.reboot(first))->type == DhcpType::nak);
  }
  CHECK(link.join(DhcpClient{0}) == first);  // who has one keeps it
  CHECK_FALSE(link.say(DhcpClient{5}.release(own, first + 5)));
  CHECK(link.join(DhcpClient{9000}) == first + 5);
  link.now += DhcpServer::lease_span;
  for (std::uint64_t mac = 1000; mac < 9000; ++mac) CHECK(link.say(DhcpClient{mac}.discover()));
  CHECK(link.join(DhcpClient{9001}) != 0);
}

TEST_CASE("a release is the holder's alone", "[control][p2p][dhcp]") {
  Link link;
  const Ipv4 address = link.join(DhcpClient{1});
  CHECK_FALSE(link.say(DhcpClient{2}.release(own, address)));
  CHECK_FALSE(link.say(DhcpClient{1}.release(own + 1, address)));
  CHECK_FALSE(link.say(DhcpClient{1}.release(own, address + 1)));
  CHECK(link.say(DhcpClient{3}.reboot(address))->type == DhcpType::nak);
  CHECK_FALSE(link.say(DhcpClient{1}.release(own, address)));
  CHECK(link.say(DhcpClient{3}.reboot(address))->type == DhcpType::ack);
}

TEST_CASE("a declined address is set aside for a while", "[control][p2p][dhcp]") {
  Link link;
  const Ipv4 address = link.join(DhcpClient{1});
  CHECK_FALSE(link.say(DhcpClient{1}.decline(own, address)));
  CHECK(link.join(DhcpClient{1}) != address);
  CHECK(link.say(DhcpClient{2}.reboot(address))->type == DhcpType::nak);
  link.now += DhcpServer::declined_span;
  CHECK(link.say(DhcpClient{2}.reboot(address))->type == DhcpType::ack);
}

TEST_CASE("N6 INFORM is answered on this link alone", "[control][p2p][dhcp]") {
  Link link;
  const auto ack = link.say(DhcpClient{1}.inform(own + 4));
  REQUIRE(ack);
  CHECK(ack->type == DhcpType::ack);
  CHECK(ack->to == own + 4);
  CHECK(ack->yiaddr == 0);
  CHECK(ack->number(1) == 0xffffff00);
  CHECK_FALSE(ack->options.contains(51));
  for (const Ipv4 elsewhere : {Ipv4{0}, to_all, Ipv4{0x08080808}, own + 256})
    CHECK_FALSE(link.say(DhcpClient{1}.inform(elsewhere)));
}

TEST_CASE("N6 an address that a message names gets no answer unless it is leased there",
          "[control][p2p][dhcp]") {
  Link link;
  DhcpClient liar{1};
  liar.ciaddr = 0x08080808;
  CHECK(link.say(DhcpClient{liar}.discover())->to == to_all);
  liar.ciaddr = 0x08080808;
  const auto ack = link.say(DhcpClient{liar}.select(own, first));
  REQUIRE(ack);
  CHECK(ack->to == to_all);
}

TEST_CASE("messages of a server, of a relay and of BOOTP get no answer", "[control][p2p][dhcp]") {
  Link link;
  CHECK_FALSE(link.say(DhcpClient{1}.bare()));
  for (const unsigned type : {0U, 2U, 5U, 6U, 9U, 255U}) {
    DhcpClient client{1};
    client.bare().option(53, std::string(1, static_cast<char>(type)));
    CHECK_FALSE(link.say(client));
  }
  const auto spoilt = [](std::size_t at, unsigned value) {
    DhcpClient client{1};
    client.discover();
    client.spoil = {at, value};
    return client;
  };
  CHECK(link.say(spoilt(0, 1)));
  CHECK_FALSE(link.say(spoilt(0, 2)));   // a server's
  CHECK_FALSE(link.say(spoilt(1, 6)));   // not Ethernet's kind
  CHECK_FALSE(link.say(spoilt(2, 16)));  // nor length
  CHECK_FALSE(link.say(spoilt(2, 255)));
  CHECK_FALSE(link.say(spoilt(27, 1)));   // of a relay
  CHECK_FALSE(link.say(spoilt(236, 0)));  // no magic: BOOTP
}
