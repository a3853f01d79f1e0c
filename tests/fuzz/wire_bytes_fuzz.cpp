// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ByteReader under any input: it never reads beyond the end, a failure stays, and what it read
// writes back to the same bytes. The first byte of each field of the input chooses what to read
// next.
#include <array>
#include <cstring>
#include <random>

#include "engine/base/byte_codec.hpp"
#include "engine/base/check.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

namespace {
constexpr std::size_t string_bytes_max = 40;

// step reads one field and writes it again.
void step(ByteReader& in, ByteWriter& out) {
  const std::uint8_t choice = in.u8();
  out.u8(choice);
  switch (choice % 6) {
    case 0: out.u8(in.u8()); break;
    case 1: out.u16(in.u16()); break;
    case 2: out.u32(in.u32()); break;
    case 3: out.u64(in.u64()); break;
    case 4: out.varint(in.varint()); break;
    default: {
      const std::uint8_t count = in.u8();
      const auto view = in.bytes(count);
      ONEHOP_CHECK(view.size() <= count);
      out.u8(count);
      out.bytes(view);
    }
  }
}
}  // namespace

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  ByteWriter writer{out};
  const std::array<std::byte, string_bytes_max> text{};
  for (std::uint64_t i = 0, fields = 1 + random() % 12; i < fields; ++i) {
    const auto choice = static_cast<std::uint8_t>(random());
    writer.u8(choice);
    switch (choice % 6) {
      case 0: writer.u8(static_cast<std::uint8_t>(random())); break;
      case 1: writer.u16(static_cast<std::uint16_t>(random())); break;
      case 2: writer.u32(static_cast<std::uint32_t>(random())); break;
      case 3: writer.u64(random()); break;
      case 4: writer.varint(random() >> (random() % 64)); break;
      default: {
        const std::size_t count = random() % (string_bytes_max + 1);
        writer.u8(static_cast<std::uint8_t>(count));
        writer.bytes(std::span{text}.first(count));
      }
    }
  }
  return writer.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > fuzz::input_bytes_max) return 0;
  ByteReader in{{reinterpret_cast<const std::byte*>(data), size}};
  std::array<std::byte, fuzz::input_bytes_max> copy;
  ByteWriter out{copy};
  while (in.remaining() > 0) {
    step(in, out);
    ONEHOP_CHECK(in.remaining() < size);
  }
  if (!in.is_ok()) {
    ONEHOP_CHECK(in.u64() == 0);
    ONEHOP_CHECK(in.bytes(1).empty());
    return 0;
  }
  ++fuzz::accepted_total;
  ONEHOP_CHECK(out.is_ok());
  ONEHOP_CHECK(out.size() == size);
  ONEHOP_CHECK(size == 0 || std::memcmp(copy.data(), data, size) == 0);
  return 0;
}
