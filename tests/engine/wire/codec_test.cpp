// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Byte codec and frame header.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/base/byte_codec.hpp"
#include "engine/wire/frame.hpp"
#include "tests/engine/base/child.hpp"

using namespace onehop;
using namespace onehop::wire;

namespace {
constexpr std::uint64_t u64_max = std::numeric_limits<std::uint64_t>::max();
using Frame = std::array<std::byte, frame_bytes_min>;

Frame encoded(const FrameHeader& header) {
  Frame frame{};
  encode_header(header, std::span{frame}.first<header_bytes>());
  return frame;
}
std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}
}  // namespace

TEST_CASE("byte codec: every value returns, and the size is the one announced",
          "[base][byte_codec]") {
  for (unsigned bit = 0; bit <= 64; ++bit) {
    for (const std::uint64_t delta : {0U, 1U}) {
      const std::uint64_t value = (bit == 64 ? 0 : std::uint64_t{1} << bit) - delta;
      std::array<std::byte, varint_bytes_max> buffer{};
      ByteWriter out{buffer};
      REQUIRE(out.varint(value));
      CHECK(out.size() == varint_bytes(value));
      ByteReader in{out.written()};
      CHECK(in.varint() == value);
      CHECK(in.is_done());
    }
  }
  std::array<std::byte, 32> buffer{};
  ByteWriter out{buffer};
  out.u8(0x12);
  out.u16(0x3456);
  out.u32(0x789abcde);
  out.u64(0x0123456789abcdef);
  out.bytes(bytes_of({1, 2, 3}));
  REQUIRE(out.is_ok());
  CHECK(buffer[1] == std::byte{0x34});  // big endian
  CHECK(buffer[7] == std::byte{0x01});
  ByteReader in{out.written()};
  CHECK(in.u8() == 0x12);
  CHECK(in.u16() == 0x3456);
  CHECK(in.u32() == 0x789abcde);
  CHECK(in.u64() == 0x0123456789abcdef);
  CHECK(in.bytes(3).size() == 3);
  CHECK(in.is_done());
}

TEST_CASE("byte codec: a varint has one form and 64 bits", "[base][byte_codec]") {
  struct Row {
    std::vector<std::byte> input;
    bool is_good;
  };
  const Row rows[] = {
      {bytes_of({0x00}), true},
      {bytes_of({0x80, 0x01}), true},
      {bytes_of({0x80, 0x00}), false},  // longer than needed
      {bytes_of({0x80}), false},        // cut off
      {{}, false},
      {bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}), true},
      {bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}), false},  // bit 65
      {bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0x00}),
       false},  // eleven bytes
  };
  for (const Row& row : rows) {
    CAPTURE(&row - rows);
    ByteReader in{row.input};
    const std::uint64_t value = in.varint();
    CHECK(in.is_done() == row.is_good);
    if (!row.is_good) CHECK(value == 0);
  }
}

TEST_CASE("byte codec: a failure stays, and touches nothing beyond the span",
          "[base][byte_codec]") {
  std::array<std::byte, 8> buffer{};
  ByteWriter out{std::span{buffer}.first(5)};
  CHECK(out.u32(1));
  CHECK_FALSE(out.u16(0xffff));
  CHECK_FALSE(out.u8(0xff));  // would fit, but the writer has failed
  CHECK(out.size() == 4);
  CHECK(out.remaining() == 0);
  CHECK(buffer[4] == std::byte{0});
  CHECK(buffer[5] == std::byte{0});

  const auto input = bytes_of({1, 2, 3});
  ByteReader in{input};
  CHECK(in.u32() == 0);
  CHECK(in.u8() == 0);
  CHECK_FALSE(in.is_ok());
  ByteReader wrapped{input};
  CHECK(wrapped.u8() == 1);
  CHECK(wrapped.bytes(std::numeric_limits<std::size_t>::max()).empty());
  CHECK_FALSE(wrapped.is_ok());
}

TEST_CASE("T2 frame headers return from the wire, also at the ends of their ranges",
          "[wire][frame]") {
  for (const auto type : {FrameType::data, FrameType::feedback, FrameType::ping, FrameType::pong}) {
    for (const std::uint64_t number :
         {std::uint64_t{0}, std::uint64_t{1} << 32, packet_number_max}) {
      for (unsigned flags = 0; flags < 16; ++flags) {
        const bool is_data = type == FrameType::data;
        const FrameHeader header{.type = type,
                                 .key_phase = (flags & 1) != 0,
                                 .is_end_of_block = is_data && (flags & 2) != 0,
                                 .is_nack_requested = (flags & 4) != 0,
                                 .nack_round = (flags & 12) == 12,
                                 .file = is_data ? 0xfedcba98U : 0,
                                 .packet_number = number,
                                 .settled = number - std::min<std::uint64_t>(number, 0xffff'ffff),
                                 .offset = is_data ? u64_max - 5 : 0};
        const auto decoded = decode_header(encoded(header));
        REQUIRE(decoded);
        CHECK(decoded->type == header.type);
        CHECK(decoded->key_phase == header.key_phase);
        CHECK(decoded->is_end_of_block == header.is_end_of_block);
        CHECK(decoded->is_nack_requested == header.is_nack_requested);
        CHECK(decoded->nack_round == header.nack_round);
        CHECK(decoded->file == header.file);
        CHECK(decoded->packet_number == header.packet_number);
        CHECK(decoded->settled == header.settled);
        CHECK(decoded->offset == header.offset);
      }
    }
  }
}

TEST_CASE("N5 a packet number of 2^62 or more is refused", "[wire][frame]") {
  const std::uint64_t number =
      GENERATE(packet_number_max + 1, std::uint64_t{1} << 63, u64_max - 1, u64_max);
  for (const auto type : {FrameType::data, FrameType::feedback, FrameType::ping, FrameType::pong})
    CHECK_FALSE(decode_header(encoded({.type = type, .packet_number = number, .settled = number})));
}

TEST_CASE("a frame header lies on the wire as documented", "[wire][frame]") {
  const Frame frame = encoded({.type = FrameType::data,
                               .key_phase = true,
                               .is_end_of_block = true,
                               .file = 0x01020304,
                               .packet_number = 0x1112131415161718,
                               .settled = 0x1112131415161710,
                               .offset = 0x2122232425262728});
  const auto expected =
      bytes_of({1,    3,    0, 0, 1, 2, 3,    4,    0x11, 0x12, 0x13, 0x14, 0x15, 0x16,
                0x17, 0x18, 0, 0, 0, 8, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28});
  CHECK(std::vector<std::byte>(frame.begin(), frame.begin() + header_bytes) == expected);
}

TEST_CASE(
    "a settled lag that does not fit is clamped, and fields of data frames are zero in others",
    "[wire][frame]") {
  const auto far = decode_header(encoded({.packet_number = packet_number_max, .settled = 1}));
  REQUIRE(far);
  CHECK(far->settled == packet_number_max - 0xffff'ffff);
  const auto ping = decode_header(
      encoded({.type = FrameType::ping, .is_end_of_block = true, .file = 7, .offset = 9}));
  REQUIRE(ping);
  CHECK(ping->file == 0);
  CHECK(ping->offset == 0);
  CHECK_FALSE(ping->is_end_of_block);
}

TEST_CASE("N1 frames with a field out of bounds are rejected", "[wire][frame]") {
  const Frame data =
      encoded({.type = FrameType::data, .file = 1, .packet_number = 10, .settled = 5, .offset = 1});
  const Frame ping = encoded({.type = FrameType::ping, .packet_number = 10, .settled = 5});
  REQUIRE(decode_header(data));
  REQUIRE(decode_header(ping));
  struct Row {
    const char* what;
    const Frame* base;
    std::size_t at;
    int value;
  };
  const Row rows[] = {{"type 0", &data, 0, 0},
                      {"type 5", &data, 0, 5},
                      {"type 255", &data, 0, 255},
                      {"a round without a request", &data, 1, 8},
                      {"flag bit 4", &data, 1, 0x10},
                      {"flag bit 7", &data, 1, 0x80},
                      {"reserved high", &data, 2, 1},
                      {"reserved low", &data, 3, 1},
                      {"lag 11 of 10", &data, 19, 11},
                      {"lag huge", &data, 16, 0xff},
                      {"ping with file", &ping, 7, 1},
                      {"ping with offset", &ping, 27, 1},
                      {"ping at end of block", &ping, 1, 2}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    Frame frame = *row.base;
    frame[row.at] = static_cast<std::byte>(row.value);
    CHECK_FALSE(decode_header(frame));
  }
  for (std::size_t size = 0; size < frame_bytes_min; ++size)
    CHECK_FALSE(decode_header(std::span{data}.first(size)));
}

TEST_CASE("settled beyond the packet number is our own bug", "[wire][frame]") {
  const auto end = test::run_in_child([] { (void)encoded({.packet_number = 4, .settled = 5}); });
  CHECK(end.signal == SIGABRT);
}

TEST_CASE("blocks are cut into equal frames that fit", "[wire][frame]") {
  for (std::size_t body_max = 1; body_max < 70'000; body_max = body_max * 9 / 8 + 1) {
    CAPTURE(body_max);
    const std::size_t size = frame_payload_bytes(body_max, block_bytes);
    const std::size_t frames = (block_bytes + body_max - 1) / body_max;
    CHECK(size <= body_max);
    CHECK((block_bytes + size - 1) / size == frames);  // no more frames than with full ones
    CHECK(size * frames - block_bytes < frames);  // the last lacks less than one byte per frame
  }
  CHECK(frame_payload_bytes(1428, 256 * 1024) == 1425);
}
