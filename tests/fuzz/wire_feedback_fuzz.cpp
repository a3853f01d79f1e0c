// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// N5: an authenticated peer may still lie. Whatever decode_feedback accepts is within every bound,
// and is the one encoding of itself. PING and PONG bodies go through the same inputs.
#include <array>
#include <cstring>
#include <random>

#include "engine/base/check.hpp"
#include "engine/wire/feedback.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  if (random() % 10 == 0) {
    wire::encode_pong({.id = random(), .hold_ns = random(), .received_bytes = random() % 65'000},
                      out.first<wire::pong_body_bytes>());
    return wire::pong_body_bytes;
  }
  static wire::Feedback f;
  f = {};
  f.sequence = random() >> 2;
  f.has_received = random() % 8 != 0;
  if (f.has_received) {
    f.from = random() >> (3 + random() % 61);
    f.largest = f.from + (random() >> (3 + random() % 61));
    const std::size_t wanted = random() % wire::ranges_per_frame_max;
    for (std::uint64_t next = f.from; f.range_count < wanted;) {
      const std::uint64_t first = next + random() % 9, last = first + random() % 200;
      if (last > f.largest || f.largest - last < 2) break;
      f.missing[f.range_count++] = {first, last};
      next = last + 2;
    }
  }
  f.receive_delay_ns = random() % 1'000'000;
  f.receiver_time_ns = random() >> 2;
  f.received_bytes_total = random() >> 2;
  f.credit_bytes_total = random() >> 2;
  f.rx_ring = {.occupancy = {static_cast<std::int64_t>(random() % 1000)},
               .drained_total = {static_cast<std::int64_t>(random() >> 2)},
               .capacity = {1000}};
  f.app_buffer = {.capacity = {static_cast<std::int64_t>(random() >> 24)}};
  f.rate_offer_bytes_per_s = random() >> 24;
  std::size_t covered = 0;
  return wire::encode_feedback(f, out, covered);
}

namespace {
void check_buffer(const QueueTelemetry& buffer) {
  ONEHOP_CHECK(buffer.occupancy >= Bytes{0});
  ONEHOP_CHECK(buffer.occupancy <= buffer.capacity);
  ONEHOP_CHECK(buffer.capacity <= Bytes{std::int64_t{1} << 40});
  ONEHOP_CHECK(buffer.drained_total >= Bytes{0});
  ONEHOP_CHECK(static_cast<std::uint64_t>(buffer.drained_total.count) <= wire::counter_max);
  ONEHOP_CHECK(buffer.refused_total <= wire::counter_max);
}

void check_ranges(const wire::Feedback& f) {
  ONEHOP_CHECK(f.from <= f.largest);
  ONEHOP_CHECK(f.range_count <= wire::ranges_per_frame_max);
  for (std::size_t i = 0; i < f.range_count; ++i) {
    ONEHOP_CHECK(f.missing[i].first >= f.from);
    ONEHOP_CHECK(f.missing[i].first <= f.missing[i].last);
    ONEHOP_CHECK(f.missing[i].last <= f.largest);
    ONEHOP_CHECK(i == 0 || f.missing[i - 1].last < f.missing[i].first - 1);
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span body{reinterpret_cast<const std::byte*>(data), size};
  if (const auto ping = wire::decode_ping(body)) ONEHOP_CHECK(size >= wire::ping_body_bytes_min);
  if (const auto pong = wire::decode_pong(body)) {
    ++fuzz::accepted_total;
    ONEHOP_CHECK(pong->hold_ns <= 10'000'000'000);
    std::array<std::byte, wire::pong_body_bytes> again;
    wire::encode_pong(*pong, again);
    ONEHOP_CHECK(std::memcmp(again.data(), data, size) == 0);
  }
  static wire::Feedback f;
  if (!wire::decode_feedback(body, f)) return 0;
  ++fuzz::accepted_total;
  check_buffer(f.rx_ring);
  check_buffer(f.app_buffer);
  check_ranges(f);
  ONEHOP_CHECK(f.rate_offer_bytes_per_s <= std::uint64_t{1} << 40);
  ONEHOP_CHECK(f.received_bytes_total <= wire::counter_max);
  ONEHOP_CHECK(f.credit_bytes_total <= wire::counter_max);
  std::array<std::byte, wire::feedback_body_bytes_max> again;
  std::size_t covered = 0;
  ONEHOP_CHECK(wire::encode_feedback(f, again, covered) == size);
  ONEHOP_CHECK(covered == f.range_count);
  ONEHOP_CHECK(std::memcmp(again.data(), data, size) == 0);
  return 0;
}
