// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Bodies of feedback, ping and pong frames.
#include "engine/wire/feedback.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "engine/base/byte_codec.hpp"
#include "tests/engine/base/child.hpp"

using namespace onehop;
using namespace onehop::wire;

namespace {
constexpr std::uint64_t u64_max = std::numeric_limits<std::uint64_t>::max();

// Places of the fields, as feedback.cpp documents them.
constexpr std::size_t flags_at = 0, sequence_at = 1, from_at = 9, largest_at = 17, delay_at = 25,
                      time_at = 33, received_at = 41, credit_at = 49, rx_occupancy_at = 57,
                      rx_drained_at = 65, rx_capacity_at = 73, app_occupancy_at = 81,
                      app_drained_at = 89, app_capacity_at = 97, drops_at = 105, ce_at = 113,
                      rate_at = 129, count_at = 137, ranges_at = 139;

Feedback sample() {
  Feedback f{};
  f.sequence = 77;
  f.from = 1000;
  f.largest = 2000;
  f.has_received = true;
  f.receive_delay_ns = 5;
  f.receiver_time_ns = 6;
  f.received_bytes_total = 7;
  f.credit_bytes_total = 8;
  f.rx_ring = {.at = Instant{6ns},
               .occupancy = {9},
               .drained_total = {10},
               .capacity = {11},
               .refused_total = 15,
               .scope = QueueScope::own_ring,
               .is_backlogged = true};
  f.app_buffer = {.at = Instant{6ns},
                  .occupancy = {12},
                  .drained_total = {13},
                  .capacity = {14},
                  .scope = QueueScope::own_ring};
  f.ce_packets_total = 16;
  f.rate_offer_bytes_per_s = 17;
  f.missing_packets_total = 18;
  f.is_list = true;
  f.range_count = 2;
  f.missing[0] = {1000, 1000};
  f.missing[1] = {1500, 1999};
  return f;
}

std::vector<std::byte> encoded(const Feedback& feedback,
                               std::size_t room = feedback_body_bytes_max) {
  std::vector<std::byte> body(room);
  std::size_t covered = 0;
  body.resize(encode_feedback(feedback, body, covered));
  return body;
}

bool is_equal(const Feedback& a, const Feedback& b) {
  const auto is_state_equal = [](const QueueTelemetry& x, const QueueTelemetry& y) {
    return x.at == y.at && x.occupancy == y.occupancy && x.drained_total == y.drained_total &&
           x.capacity == y.capacity && x.refused_total == y.refused_total && x.scope == y.scope &&
           x.is_backlogged == y.is_backlogged;
  };
  return a.sequence == b.sequence && a.from == b.from && a.largest == b.largest &&
         a.has_received == b.has_received && a.receive_delay_ns == b.receive_delay_ns &&
         a.receiver_time_ns == b.receiver_time_ns &&
         a.received_bytes_total == b.received_bytes_total &&
         a.credit_bytes_total == b.credit_bytes_total && is_state_equal(a.rx_ring, b.rx_ring) &&
         is_state_equal(a.app_buffer, b.app_buffer) && a.ce_packets_total == b.ce_packets_total &&
         a.missing_packets_total == b.missing_packets_total && a.is_list == b.is_list &&
         a.has_more == b.has_more && a.rate_offer_bytes_per_s == b.rate_offer_bytes_per_s &&
         a.range_count == b.range_count &&
         std::equal(
             a.missing.begin(), a.missing.begin() + a.range_count, b.missing.begin(),
             [](PacketRange x, PacketRange y) { return x.first == y.first && x.last == y.last; });
}

void patch(std::vector<std::byte>& body, std::size_t at, std::uint64_t value) {
  store_be(body.data() + at, value);
}
}  // namespace

TEST_CASE("feedback returns from the wire", "[wire][feedback]") {
  Feedback decoded;
  const auto body = encoded(sample());
  REQUIRE(decode_feedback(body, decoded));
  CHECK(is_equal(decoded, sample()));

  Feedback nothing{};
  nothing.sequence = 3;
  nothing.from = 5;  // means nothing without has_received, and is not sent
  REQUIRE(decode_feedback(encoded(nothing), decoded));
  nothing.from = 0;
  nothing.rx_ring.scope = nothing.app_buffer.scope = QueueScope::own_ring;
  CHECK(is_equal(decoded, nothing));
}

TEST_CASE("T2 feedback returns from the wire for random ranges, also near 2^62",
          "[wire][feedback]") {
  const auto seed = GENERATE(range(1U, 200U));
  CAPTURE(seed);
  std::mt19937_64 random{seed};
  Feedback f = sample();
  const std::uint64_t span = (random() >> (3 + random() % 40)) | 2000;
  f.from = seed % 2 == 0 ? counter_max - span : random() % 1000;
  f.largest = f.from + span;
  f.range_count = 0;
  std::uint64_t next = f.from;
  const std::uint64_t step = std::max<std::uint64_t>(span / 300, 2);
  while (f.range_count < ranges_per_frame_max) {
    const std::uint64_t gap = random() % step, length = random() % step;
    if (f.largest - next < gap || f.largest - next - gap < length) break;
    f.missing[f.range_count++] = {next + gap, next + gap + length};
    if (f.largest - (next + gap + length) < 2) break;
    next += gap + length + 2;
  }
  const auto body = encoded(f);
  Feedback decoded;
  REQUIRE(decode_feedback(body, decoded));
  if (decoded.range_count < f.range_count) {
    // Cut off: the frame speaks for what it lists, up to the number before the first range that it
    // does not.
    CHECK(decoded.largest == f.missing[decoded.range_count].first - 1);
    CHECK(body.size() + 20 > feedback_body_bytes_max);
    f.range_count = decoded.range_count;
    f.largest = decoded.largest;
  }
  CHECK(is_equal(decoded, f));
}

TEST_CASE("feedback lists 500 short ranges in one frame, and cuts off what does not fit",
          "[wire][feedback]") {
  Feedback f = sample();
  f.from = 0;
  f.largest = std::uint64_t{1} << 40;
  f.range_count = ranges_per_frame_max;
  for (std::size_t i = 0; i < ranges_per_frame_max; ++i) f.missing[i] = {2 * i, 2 * i};
  Feedback decoded;
  REQUIRE(decode_feedback(encoded(f), decoded));
  CHECK(is_equal(decoded, f));

  for (std::size_t i = 0; i < ranges_per_frame_max; ++i) f.missing[i] = {i << 20, (i << 20) + 1000};
  const std::size_t rooms[] = {feedback_body_bytes_min, 400, feedback_body_bytes_max, 5000};
  for (const std::size_t room : rooms) {
    CAPTURE(room);
    std::vector<std::byte> body(room);
    std::size_t covered = 0;
    const std::size_t size = encode_feedback(f, body, covered);
    REQUIRE(size > 0);
    CHECK(size <= std::min(room, feedback_body_bytes_max));
    CHECK(covered > 0);
    CHECK(covered < f.range_count);
    REQUIRE(decode_feedback(std::span{body}.first(size), decoded));
    CHECK(decoded.range_count == covered);
    CHECK(decoded.largest == f.missing[covered].first - 1);
  }
  std::vector<std::byte> small(feedback_body_bytes_min - 1);
  std::size_t covered = 1;
  CHECK(encode_feedback(f, small, covered) == 0);
  CHECK(covered == 0);
}

TEST_CASE("N5 feedback with an inflated or impossible number is rejected", "[wire][feedback]") {
  struct Row {
    const char* what;
    std::size_t at;
    std::uint64_t good, bad;
  };
  const std::uint64_t capacity_max = std::uint64_t{1} << 40;
  const Row rows[] = {
      {"from above largest", from_at, 1000, 2001},
      {"largest below a range", largest_at, 1999, 1998},
      {"largest", largest_at, counter_max, counter_max + 1},
      {"sequence", sequence_at, counter_max, u64_max},
      {"delay", delay_at, receive_delay_ns_max, receive_delay_ns_max + 1},
      {"time", time_at, counter_max, counter_max + 1},
      {"received", received_at, counter_max, u64_max},
      {"credit", credit_at, counter_max, counter_max + 1},
      {"rx occupancy above capacity", rx_occupancy_at, 11, 12},
      {"rx occupancy negative", rx_occupancy_at, 0, u64_max},
      {"rx drained", rx_drained_at, counter_max, counter_max + 1},
      {"rx capacity", rx_capacity_at, capacity_max, capacity_max + 1},
      {"app occupancy above capacity", app_occupancy_at, 14, 15},
      {"app drained", app_drained_at, counter_max, u64_max},
      {"app capacity", app_capacity_at, capacity_max, capacity_max + 1},
      {"app capacity below occupancy", app_capacity_at, 12, 11},
      {"drops", drops_at, counter_max, counter_max + 1},
      {"ce", ce_at, counter_max, counter_max + 1},
      {"inflated rate", rate_at, std::uint64_t{1} << 40, (std::uint64_t{1} << 40) + 1},
      {"rate as a NaN's bits", rate_at, 0, 0x7ff8'0000'0000'0000},
  };
  Feedback decoded;
  for (const Row& row : rows) {
    CAPTURE(row.what);
    auto body = encoded(sample());
    patch(body, row.at, row.good);
    // Lowering `from` or raising a bound keeps the ranges where they are.
    CHECK(decode_feedback(body, decoded));
    patch(body, row.at, row.bad);
    CHECK_FALSE(decode_feedback(body, decoded));
  }
}

TEST_CASE("N5 feedback with bad flags, counts, lengths or ranges is rejected", "[wire][feedback]") {
  Feedback decoded;
  const auto good = encoded(sample());
  REQUIRE(decode_feedback(good, decoded));
  for (std::size_t size = 0; size < good.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(decode_feedback(std::span{good}.first(size), decoded));
  }
  const auto is_accepted = [&](auto change) {
    auto body = good;
    change(body);
    return decode_feedback(body, decoded);
  };
  CHECK_FALSE(is_accepted([](auto& body) { body.push_back(std::byte{0}); }));
  CHECK_FALSE(is_accepted([](auto& body) { body.resize(feedback_body_bytes_max + 1); }));
  CHECK_FALSE(is_accepted([](auto& body) { body[flags_at] |= std::byte{32}; }));
  CHECK_FALSE(is_accepted(
      [](auto& body) { body[flags_at] &= std::byte{0xfe}; }));  // ranges, but nothing received
  CHECK_FALSE(is_accepted([](auto& body) { body[count_at + 1] = std::byte{1}; }));
  CHECK_FALSE(is_accepted([](auto& body) { body[count_at + 1] = std::byte{3}; }));
  CHECK_FALSE(is_accepted([](auto& body) { body[count_at] = std::byte{2}; }));  // 514 ranges

  // Ranges by hand, in [1000, 2000]: (gap, length) pairs.
  const auto with_ranges = [&](std::initializer_list<std::uint64_t> varints) {
    auto body = good;
    body.resize(feedback_body_bytes_max);
    ByteWriter out{std::span{body}.subspan(ranges_at)};
    for (const auto value : varints) out.varint(value);
    body.resize(ranges_at + out.size());
    store_be(body.data() + count_at, static_cast<std::uint16_t>(varints.size() / 2));
    return decode_feedback(body, decoded);
  };
  CHECK(with_ranges({}));
  CHECK(with_ranges({0, 1000}));
  CHECK_FALSE(with_ranges({0, 1001}));  // beyond largest
  CHECK(with_ranges({1000, 0}));
  CHECK_FALSE(with_ranges({1001, 0}));
  CHECK_FALSE(with_ranges({u64_max, 0}));        // wraps to 999
  CHECK_FALSE(with_ranges({u64_max - 998, 0}));  // wraps to 1
  CHECK_FALSE(with_ranges({0, u64_max}));
  CHECK(with_ranges({0, 998, 0, 0}));        // 1000..1998, 2000
  CHECK_FALSE(with_ranges({0, 999, 0, 0}));  // no room for a second
  CHECK_FALSE(with_ranges({0, 998, 1, 0}));
  CHECK_FALSE(with_ranges({0, 0, u64_max - 1, 0}));  // back onto the first
}

TEST_CASE("feedback encodes a buffer beyond its capacity as full", "[wire][feedback]") {
  Feedback f = sample();
  f.rx_ring.occupancy = Bytes{5000};
  f.receive_delay_ns = u64_max;
  Feedback decoded;
  REQUIRE(decode_feedback(encoded(f), decoded));
  CHECK(decoded.rx_ring.occupancy == Bytes{11});
  CHECK(decoded.receive_delay_ns == receive_delay_ns_max);
}

TEST_CASE("ranges that break their own rule are our own bug", "[wire][feedback]") {
  const auto ends = [](PacketRange first, PacketRange second) {
    return test::run_in_child([&] {
             auto f = std::make_unique<Feedback>(sample());
             f->missing[0] = first;
             f->missing[1] = second;
             (void)encoded(*f);
           })
        .signal;
  };
  CHECK(ends({1000, 1001}, {1003, 2000}) == 0);
  CHECK(ends({1000, 1001}, {1002, 2000}) == SIGABRT);  // adjacent
  CHECK(ends({999, 1001}, {1003, 2000}) == SIGABRT);   // below from
  CHECK(ends({1000, 1001}, {1003, 2001}) == SIGABRT);  // above largest
  CHECK(ends({1001, 1000}, {1003, 2000}) == SIGABRT);  // backwards
}

TEST_CASE("ping and pong return from the wire and are bounded", "[wire][feedback]") {
  std::vector<std::byte> body(1428, std::byte{0xee});
  encode_ping({.id = 0x0102030405060708, .feedback_interval_us = 50'000}, body);
  REQUIRE(decode_ping(body));
  CHECK(decode_ping(body)->id == 0x0102030405060708);
  CHECK(decode_ping(body)->feedback_interval_us == 50'000);
  store_be<std::uint32_t>(body.data() + 8, feedback_interval_us_max + 1);
  CHECK_FALSE(decode_ping(body));
  encode_ping({.id = 1, .feedback_interval_us = feedback_interval_us_max}, body);
  CHECK(decode_ping(body)->feedback_interval_us == feedback_interval_us_max);
  CHECK(std::all_of(body.begin() + 12, body.end(), [](std::byte b) { return b == std::byte{0}; }));
  CHECK_FALSE(decode_ping(std::span{body}.first(11)));
  CHECK(decode_ping(std::span{body}.first(12)));

  std::array<std::byte, pong_body_bytes> pong{};
  const auto decoded = [&](Pong value) {
    encode_pong(value, pong);
    return decode_pong(pong);
  };
  REQUIRE(decoded({.id = 5, .hold_ns = hold_ns_max, .received_bytes = 65527}));
  CHECK(decode_pong(pong)->id == 5);
  CHECK(decode_pong(pong)->hold_ns == 10'000'000'000);
  CHECK(decode_pong(pong)->received_bytes == 65527);
  CHECK_FALSE(decoded({.id = 5, .hold_ns = 1, .received_bytes = 65528}));
  CHECK(decoded({.id = 5, .hold_ns = u64_max, .received_bytes = 1})->hold_ns ==
        hold_ns_max);  // clamped where written
  store_be(pong.data() + 8, hold_ns_max + 1);
  CHECK_FALSE(decode_pong(pong));
  CHECK_FALSE(decode_pong(std::span{pong}.first(23)));
  std::vector<std::byte> longer(25);
  CHECK_FALSE(decode_pong(longer));
}
