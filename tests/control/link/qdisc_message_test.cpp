// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Parsers on messages recorded from a kernel (record_netlink.py) and on hostile ones made from
// them.
#include <catch2/catch.hpp>

#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "control/link/qdisc_message.hpp"
#include "engine/base/system/interface.hpp"

namespace onehop::link {
namespace {

using Message = std::vector<std::byte>;

std::vector<Message> recorded(const std::string& name) {
  std::ifstream in{std::string{ONEHOP_RECORDED} + "/" + name};
  REQUIRE(in);
  std::vector<Message> messages;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    Message m;
    for (std::size_t i = 0; i + 1 < line.size(); i += 2)
      m.push_back(static_cast<std::byte>(std::stoul(line.substr(i, 2), nullptr, 16)));
    messages.push_back(std::move(m));
  }
  REQUIRE_FALSE(messages.empty());
  return messages;
}

std::vector<QdiscReading> recorded_qdiscs() {
  std::vector<QdiscReading> out;
  for (const Message& m : recorded("qdisc.hex")) {
    const auto q = parse_qdisc(m);
    REQUIRE(q);
    out.push_back(*q);
  }
  return out;
}

int index_of(const std::string& name) {
  for (const Message& m : recorded("link.hex")) {
    const auto link = parse_interface(m);
    REQUIRE(link);
    if (link->name == name) return link->ifindex;
  }
  FAIL("no such interface in the record: " << name);
  return 0;
}

std::optional<QueueTelemetry> pick(const std::string& name) {
  return pick_queue(recorded_qdiscs(), index_of(name), Instant{1s}, 1514, 1000);
}

// 20 frames of 1000 bytes met a shaper of 8 kbit/s with a bucket of 2000 bytes: some left, the rest
// stands there.
TEST_CASE("a recorded tbf root gives its backlog, its drained bytes and its limit",
          "[control][link]") {
  const auto q = pick("va");
  REQUIRE(q);
  CHECK(q->occupancy > Bytes{10'000});
  CHECK((q->occupancy + q->drained_total) >= Bytes{20'000});
  CHECK(q->capacity == Bytes{1'000'000});
}

TEST_CASE("a recorded htb root takes the limit of its only leaf", "[control][link]") {
  const auto q = pick("du");
  REQUIRE(q);
  CHECK(q->capacity == Bytes{750'000});
}

TEST_CASE("a recorded pfifo's packets become bytes", "[control][link]") {
  const auto q = pick("dp");
  REQUIRE(q);
  CHECK(q->capacity == Bytes{1514 * 1000});
}

TEST_CASE("noqueue and an unknown interface give nothing, not zero", "[control][link]") {
  CHECK_FALSE(pick("mv"));
  CHECK_FALSE(pick("vb"));
  CHECK_FALSE(pick_queue(recorded_qdiscs(), 9999, Instant{}, 1514, 1000));
}

TEST_CASE("recorded links tell kind, MTU and what lies below", "[control][link]") {
  for (const Message& m : recorded("link.hex")) {
    const auto link = parse_interface(m);
    REQUIRE(link);
    CHECK(link->mtu_bytes >= 1280);
    CHECK(link->tx_dropped_total.has_value());
    if (link->name == "mv") {
      CHECK(link->kind == "macvlan");
      CHECK(link->lower_ifindex == index_of("va"));
    }
    if (link->name == "va") CHECK((link->kind == "veth" && link->lower_ifindex == 0));
    if (link->name == "lo") CHECK(link->is_loopback);
  }
}

// Each cut is copied into a buffer of its exact size, so that a sanitizer sees a read beyond it.
TEST_CASE("N5 a message cut anywhere is refused or read within its bounds", "[control][link]") {
  for (const char* name : {"qdisc.hex", "link.hex"}) {
    for (const Message& m : recorded(name)) {
      for (std::size_t size = 0; size < m.size(); ++size) {
        const Message cut{m.begin(), m.begin() + static_cast<std::ptrdiff_t>(size)};
        CHECK_FALSE(parse_qdisc(cut));
        CHECK_FALSE(parse_interface(cut));
      }
    }
  }
}

TEST_CASE("N5 messages with random bytes changed never read out of bounds nor give absurd totals",
          "[control][link]") {
  constexpr unsigned seed = 20260711;
  CAPTURE(seed);
  std::mt19937 random{seed};
  for (const char* name : {"qdisc.hex", "link.hex"}) {
    for (const Message& original : recorded(name)) {
      for (int round = 0; round < 500; ++round) {
        Message m = original;
        for (int i = 0; i < 3; ++i) m[random() % m.size()] = static_cast<std::byte>(random());
        if (const auto q = parse_qdisc(m)) {
          const std::vector<QdiscReading> all{*q};
          if (const auto p =
                  pick_queue(all, q->ifindex, Instant{}, ~std::uint64_t{0}, ~std::uint64_t{0})) {
            REQUIRE(p->occupancy >= Bytes{0});
            REQUIRE(p->drained_total >= Bytes{0});
            REQUIRE(p->capacity >= Bytes{0});
          }
        }
        if (const auto link = parse_interface(m)) REQUIRE(link->lower_ifindex >= 0);
      }
    }
  }
}

TEST_CASE("N5 an attribute longer than its message is refused", "[control][link]") {
  Message m = recorded("qdisc.hex").front();
  nlattr attribute;
  std::memcpy(&attribute, m.data() + NLMSG_SPACE(sizeof(tcmsg)), sizeof attribute);
  SECTION("too long") { attribute.nla_len = 0xffff; }
  SECTION("shorter than its header") { attribute.nla_len = 1; }
  SECTION("zero, which would never end") { attribute.nla_len = 0; }
  std::memcpy(m.data() + NLMSG_SPACE(sizeof(tcmsg)), &attribute, sizeof attribute);
  CHECK_FALSE(parse_qdisc(m));
}

TEST_CASE("a root without statistics gives nothing, not zero", "[control][link]") {
  QdiscReading q{.ifindex = 3, .handle = 0x10000, .parent = TC_H_ROOT, .kind = "tbf"};
  const std::vector<QdiscReading> all{q};
  CHECK_FALSE(pick_queue(all, 3, Instant{}, 1514, 1000));
}

}  // namespace
}  // namespace onehop::link
