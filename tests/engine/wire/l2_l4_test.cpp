// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Headers for raw ports, against a straightforward reading of the RFCs.
#include "engine/wire/l2_l4.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <vector>

#include "engine/base/byte_codec.hpp"

using namespace onehop;
using namespace onehop::wire;

namespace {

// RFC 1071, word by word in network order; 0xffff is a sum that verifies.
std::uint32_t add_words(std::uint32_t sum, std::span<const std::byte> data) {
  for (std::size_t i = 0; i < data.size(); i += 2) {
    const auto high = std::to_integer<std::uint32_t>(data[i]);
    const auto low = i + 1 < data.size() ? std::to_integer<std::uint32_t>(data[i + 1]) : 0U;
    sum += (high << 8) | low;
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return sum;
}

UdpFlow flow(bool is_ipv6) {
  UdpFlow f{.is_ipv6 = is_ipv6, .source_port = 0x1cf3, .target_port = 40'000, .dscp = 8};
  for (std::size_t i = 0; i < 16; ++i) {
    f.source_ip[i] = is_ipv6 || i < 4 ? static_cast<std::byte>(0xfd - i) : std::byte{0};
    f.target_ip[i] = is_ipv6 || i < 4 ? static_cast<std::byte>(0x17 * i + 3) : std::byte{0};
  }
  for (std::size_t i = 0; i < 6; ++i) f.source_mac[i] = static_cast<std::byte>(0xa0 + i);
  for (std::size_t i = 0; i < 6; ++i) f.target_mac[i] = static_cast<std::byte>(0x50 + i);
  return f;
}

std::vector<std::byte> frame_of(const UdpFlow& f, std::span<const std::byte> payload) {
  std::array<std::byte, l2_l4_bytes_max> made{};
  const std::size_t size = build_headers(f, made);
  const HeaderTemplate header{std::span{made}.first(size)};
  std::vector<std::byte> frame(size + payload.size());
  std::copy(payload.begin(), payload.end(), frame.begin() + static_cast<std::ptrdiff_t>(size));
  header.write(frame.data(), std::span{frame}.subspan(size));
  return frame;
}

std::vector<std::byte> random_bytes(std::mt19937_64& random, std::size_t size) {
  std::vector<std::byte> out(size);
  for (auto& b : out) b = static_cast<std::byte>(random());
  return out;
}

}  // namespace

TEST_CASE("raw headers verify as the RFCs compute them, for every payload length",
          "[wire][l2_l4]") {
  std::mt19937_64 random{11};
  const std::size_t sizes[] = {0,  1,  2,    3,    7,    8,    9,    15,    16,
                               17, 44, 1427, 1428, 1471, 1472, 8972, 65000, 65507};
  for (const std::size_t size : sizes) {
    CAPTURE(size);
    const auto payload = random_bytes(random, size);
    const auto v4 = frame_of(flow(false), payload);
    REQUIRE(v4.size() == 42 + size);
    CHECK(add_words(0, std::span{v4}.subspan(14, 20)) == 0xffff);  // RFC 791
    CHECK(load_be<std::uint16_t>(v4.data() + 16) == 28 + size);
    CHECK(load_be<std::uint16_t>(v4.data() + 38) == 8 + size);
    CHECK(load_be<std::uint16_t>(v4.data() + 40) == 0);  // no UDP checksum

    const auto v6 = frame_of(flow(true), payload);
    REQUIRE(v6.size() == 62 + size);
    CHECK(load_be<std::uint16_t>(v6.data() + 18) == 8 + size);
    CHECK(load_be<std::uint16_t>(v6.data() + 58) == 8 + size);
    std::array<std::byte, 8> pseudo{};  // RFC 8200 8.1: length u32, zero, next header
    store_be(pseudo.data(), static_cast<std::uint32_t>(8 + size));
    pseudo[7] = std::byte{17};
    const std::uint32_t sum = add_words(
        add_words(add_words(0, std::span{v6}.subspan(22, 32)), pseudo), std::span{v6}.subspan(54));
    CHECK(sum == 0xffff);
    CHECK(load_be<std::uint16_t>(v6.data() + 60) != 0);
  }
}

TEST_CASE("an IPv6 checksum that computes to zero is sent as all ones", "[wire][l2_l4]") {
  // Walk a 16-bit word of the payload through all values: exactly one of them brings the checksum
  // to zero.
  std::array<std::byte, l2_l4_bytes_max> made{};
  const std::size_t size = build_headers(flow(true), made);
  const HeaderTemplate header{std::span{made}.first(size)};
  std::array<std::byte, 62> headers{};
  std::array<std::byte, 2> payload{};
  int zeros = 0, ones = 0;
  for (std::uint32_t word = 0; word < 0x10000; ++word) {
    store_be(payload.data(), static_cast<std::uint16_t>(word));
    header.write(headers.data(), payload);
    zeros += load_be<std::uint16_t>(headers.data() + 60) == 0;
    ones += load_be<std::uint16_t>(headers.data() + 60) == 0xffff;
  }
  CHECK(zeros == 0);
  CHECK(ones >= 1);
}

TEST_CASE("raw headers carry ECT(0), DF, hop limit 64 and the DSCP", "[wire][l2_l4]") {
  const auto v4 = frame_of(flow(false), {});
  CHECK(load_be<std::uint16_t>(v4.data() + 12) == 0x0800);
  CHECK(v4[14] == std::byte{0x45});
  CHECK(v4[15] == static_cast<std::byte>(8 << 2 | 2));
  CHECK(load_be<std::uint16_t>(v4.data() + 20) == 0x4000);
  CHECK(v4[22] == std::byte{64});
  CHECK(v4[23] == std::byte{17});
  CHECK(v4[0] == std::byte{0x50});
  CHECK(v4[6] == std::byte{0xa0});
  const auto v6 = frame_of(flow(true), {});
  CHECK(load_be<std::uint16_t>(v6.data() + 12) == 0x86dd);
  CHECK(load_be<std::uint32_t>(v6.data() + 14) == (0x60000000U | (8U << 2 | 2U) << 20));
  CHECK(v6[20] == std::byte{17});
  CHECK(v6[21] == std::byte{64});
}

TEST_CASE("a received frame gives back what was built, with padding and marks", "[wire][l2_l4]") {
  std::mt19937_64 random{12};
  for (const bool is_ipv6 : {false, true}) {
    for (const std::size_t size : std::initializer_list<std::size_t>{0, 1, 44, 1428}) {
      const auto payload = random_bytes(random, size);
      auto frame = frame_of(flow(is_ipv6), payload);
      frame.resize(frame.size() + 18, std::byte{0x5a});  // Ethernet pads short frames
      if (is_ipv6)
        frame[15] |= std::byte{0x30};
      else
        frame[15] |= std::byte{3};
      const auto parsed = parse_udp_frame(frame);
      REQUIRE(parsed);
      CHECK(std::vector<std::byte>(parsed->payload.begin(), parsed->payload.end()) == payload);
      CHECK(parsed->is_ipv6 == is_ipv6);
      CHECK(parsed->source_ip == flow(is_ipv6).source_ip);
      CHECK(parsed->target_ip == flow(is_ipv6).target_ip);
      CHECK(parsed->source_mac == flow(is_ipv6).source_mac);
      CHECK(parsed->source_port == 0x1cf3);
      CHECK(parsed->target_port == 40'000);
      CHECK(parsed->ecn == Ecn::ce);
    }
  }
}

TEST_CASE(
    "the first piece of a frame tells the payload that is in it, and how much there is in all",
    "[wire][l2_l4]") {
  std::mt19937_64 random{13};
  for (const bool is_ipv6 : {false, true}) {
    const auto payload = random_bytes(random, 500);
    auto frame = frame_of(flow(is_ipv6), payload);
    const std::size_t headers = frame.size() - payload.size();
    frame.resize(frame.size() + 7);  // padding
    for (std::size_t first = 0; first <= frame.size(); ++first) {
      CAPTURE(is_ipv6, first);
      const auto parsed = parse_udp_frame(std::span{frame}.first(first), frame.size());
      REQUIRE(parsed.has_value() == (first >= headers));
      if (!parsed) continue;
      CHECK(parsed->payload_bytes == payload.size());
      CHECK(parsed->payload.data() == frame.data() + headers);
      CHECK(parsed->payload.size() == std::min(first - headers, payload.size()));
    }
    CHECK_FALSE(parse_udp_frame(frame, frame.size() - 1));  // a piece larger than the frame
    CHECK_FALSE(parse_udp_frame(std::span{frame}.first(100), headers + payload.size() - 1));
  }
}

TEST_CASE("N1 what is not one whole UDP datagram is not parsed", "[wire][l2_l4]") {
  const std::vector<std::byte> payload(50);
  for (const bool is_ipv6 : {false, true}) {
    CAPTURE(is_ipv6);
    const auto good = frame_of(flow(is_ipv6), payload);
    REQUIRE(parse_udp_frame(good));
    for (std::size_t size = 0; size < good.size(); ++size)
      CHECK_FALSE(parse_udp_frame(std::span{good}.first(size)));
    struct Row {
      const char* what;
      std::size_t at;
      int value;
    };
    const std::vector<Row> rows =
        is_ipv6 ? std::vector<Row>{{"ethertype", 12, 0x81},     {"version", 14, 0x40},
                                   {"next header TCP", 20, 6},  {"fragment header", 20, 44},
                                   {"hop by hop", 20, 0},       {"length too long", 19, 59},
                                   {"length below UDP", 19, 7}, {"UDP length", 59, 57},
                                   {"UDP length short", 59, 7}}
                : std::vector<Row>{{"ethertype", 12, 0x81},
                                   {"version 6", 14, 0x65},
                                   {"options", 14, 0x46},
                                   {"short header", 14, 0x44},
                                   {"TCP", 23, 6},
                                   {"more fragments", 20, 0x20},
                                   {"fragment offset", 21, 1},
                                   {"length too long", 17, 79},
                                   {"length below UDP", 17, 27},
                                   {"UDP length", 39, 57},
                                   {"UDP length long", 39, 59},
                                   {"UDP length short", 39, 7}};
    for (const Row& row : rows) {
      CAPTURE(row.what);
      auto frame = good;
      frame[row.at] = static_cast<std::byte>(row.value);
      CHECK_FALSE(parse_udp_frame(frame));
    }
  }
}
