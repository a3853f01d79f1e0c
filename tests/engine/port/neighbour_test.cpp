// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Address resolution without a kernel: questions and answers against messages written out by hand,
// and hostile ones.
#include <catch2/catch.hpp>

#include <random>
#include <vector>

#include "engine/port/dpdk/neighbour.hpp"

namespace onehop::dpdk {
namespace {

using Frame = std::vector<std::byte>;

Frame bytes_of(std::initializer_list<int> values) {
  Frame frame;
  for (const int value : values) frame.push_back(static_cast<std::byte>(value));
  return frame;
}

// By hand from RFC 826: 02:77:00:00:00:0a at 10.77.0.1 asks for 10.77.0.2, and 02:77:00:00:00:0b
// answers.
const Frame arp_question =
    bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0x77, 0,    0,    0,  0x0a, 0x08, 0x06,
              0,    1,    8,    0,    6,    4,    0,    1,    0x02, 0x77, 0,  0,    0,    0x0a,
              10,   77,   0,    1,    0,    0,    0,    0,    0,    0,    10, 77,   0,    2});
const Frame arp_answer =
    bytes_of({0x02, 0x77, 0, 0, 0,    0x0a, 0x02, 0x77, 0,    0,    0,  0x0b, 0x08, 0x06,
              0,    1,    8, 0, 6,    4,    0,    2,    0x02, 0x77, 0,  0,    0,    0x0b,
              10,   77,   0, 2, 0x02, 0x77, 0,    0,    0,    0x0a, 10, 77,   0,    1});

NeighbourHost host(bool is_ipv6, int last) {
  NeighbourHost self;
  self.mac = {std::byte{0x02}, std::byte{0x77}, std::byte{0},
              std::byte{0},    std::byte{0},    static_cast<std::byte>(9 + last)};
  if (is_ipv6) {
    self.ip[0] = std::byte{0xfd};
    self.ip[1] = std::byte{0x77};
    self.ip[15] = static_cast<std::byte>(last);
  } else {
    self.ip = {std::byte{10}, std::byte{77}, std::byte{0}, static_cast<std::byte>(last)};
  }
  return self;
}

Frame question(bool is_ipv6) {
  std::array<std::byte, neighbour_bytes_max> out;
  const std::size_t bytes = build_question(host(is_ipv6, 1), host(is_ipv6, 2).ip, is_ipv6, out);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(bytes)};
}

Frame answer(bool is_ipv6) {
  std::array<std::byte, neighbour_bytes_max> out;
  const auto asked = parse_neighbour(question(is_ipv6));
  REQUIRE(asked);
  const std::size_t bytes = build_answer(host(is_ipv6, 2), *asked, out);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(bytes)};
}

}  // namespace

TEST_CASE("ARP questions and answers are laid out as RFC 826 says, padded to a frame",
          "[wire][neighbour]") {
  Frame asked = question(false), told = answer(false);
  REQUIRE(asked.size() == 60);
  REQUIRE(told.size() == 60);
  asked.resize(arp_question.size());
  told.resize(arp_answer.size());
  CHECK(asked == arp_question);
  CHECK(told == arp_answer);
}

TEST_CASE("a question is answered to who asked, and the answer tells where the other end is",
          "[wire][neighbour]") {
  const bool is_ipv6 = GENERATE(false, true);
  CAPTURE(is_ipv6);
  const auto asked = parse_neighbour(question(is_ipv6));
  REQUIRE(asked);
  CHECK(asked->is_question);
  CHECK(asked->is_ipv6 == is_ipv6);
  CHECK(asked->sender.mac == host(is_ipv6, 1).mac);
  CHECK(asked->sender.ip == host(is_ipv6, 1).ip);
  CHECK(asked->target_ip == host(is_ipv6, 2).ip);
  const auto told = parse_neighbour(answer(is_ipv6));
  REQUIRE(told);
  CHECK_FALSE(told->is_question);
  CHECK(told->sender.mac == host(is_ipv6, 2).mac);
  CHECK(told->sender.ip == host(is_ipv6, 2).ip);
}

// The group address and checksum of a solicitation, worked out by hand from RFC 4291 2.7.1 and RFC
// 8200 8.1.
TEST_CASE("an IPv6 question goes to the solicited-node group with hop limit 255",
          "[wire][neighbour]") {
  const Frame asked = question(true);
  REQUIRE(asked.size() == 86);
  CHECK(Frame(asked.begin(), asked.begin() + 6) == bytes_of({0x33, 0x33, 0xff, 0, 0, 2}));
  CHECK(asked[21] == std::byte{255});
  CHECK(Frame(asked.begin() + 38, asked.begin() + 54) ==
        bytes_of({0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 2}));
  std::uint64_t sum = wire::ones_complement_sum(std::span{asked}.subspan(22, 32)) +
                      wire::ones_complement_sum(std::span{asked}.subspan(54));
  const Frame pseudo = bytes_of({0, 32, 0, 58});
  sum += wire::ones_complement_sum(pseudo);
  CHECK(wire::fold_sum(sum) == 0xffff);
}

TEST_CASE("N3 what breaks the RFCs' rules is no neighbour message", "[wire][neighbour][N3]") {
  CHECK_FALSE(parse_neighbour({}));
  CHECK_FALSE(parse_neighbour(std::span{arp_question}.first(41)));
  for (const std::size_t at : {14UL, 16UL, 18UL, 19UL, 21UL}) {  // kinds, lengths, operation
    Frame broken = arp_question;
    broken[at] = std::byte{9};
    CAPTURE(at);
    CHECK_FALSE(parse_neighbour(broken));
  }
  const Frame good = answer(true);
  CHECK_FALSE(parse_neighbour(std::span{good}.first(85)));  // the length says more
  for (const std::size_t at : {20UL, 21UL, 54UL, 55UL, 56UL,
                               79UL}) {  // next header, hop limit, type, code, sum, option length
    Frame broken = good;
    broken[at] ^= std::byte{1};
    CAPTURE(at);
    CHECK_FALSE(parse_neighbour(broken));
  }
}

TEST_CASE("N3 random bytes behind the right ethertypes are parsed without harm",
          "[wire][neighbour][N3]") {
  constexpr unsigned seed = 4711;
  CAPTURE(seed);
  std::mt19937 random{seed};
  std::size_t taken = 0;
  for (int round = 0; round < 100'000; ++round) {
    Frame frame = round % 2 == 0 ? answer(true) : arp_answer;
    for (int i = 0; i < 3; ++i)
      frame[12 + random() % (frame.size() - 12)] = static_cast<std::byte>(random());
    frame.resize(random() % 4 == 0 ? random() % (frame.size() + 1) : frame.size());
    taken += parse_neighbour(frame) ? 1 : 0;
  }
  CHECK(taken < 100'000);
}

}  // namespace onehop::dpdk
