// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Codec of FEEDBACK, PING and PONG bodies. Pure functions, called by the engine core of either end.
//
//   flags u8 | sequence, from, largest u64 | receive_delay, receiver_time u64 | received_bytes,
//   credit u64 | rx_ring 3 x u64 | app_buffer 3 x u64 | kernel_drops, ce_packets, missing_packets,
//   rate_offer u64 | range_count u16 | ranges
//
// A range is two varints: the gap of received packets before it (less one between ranges: they are
// never adjacent) and its length less one. One report has one encoding.
#include "engine/wire/feedback.hpp"

#include <algorithm>
#include <cstring>

#include "engine/base/byte_codec.hpp"
#include "engine/base/check.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::wire {

namespace {

constexpr std::uint8_t has_received_flag = 1, rx_backlogged_flag = 2, app_backlogged_flag = 4,
                       list_flag = 8, more_flag = 16;
constexpr std::uint8_t flags_known = 31;
constexpr std::size_t range_count_at = feedback_fixed_bytes - sizeof(std::uint16_t);
static_assert(feedback_fixed_bytes == 1 + 7 * 8 + 2 * 24 + 4 * 8 + 2);
static_assert(counter_max == packet_number_max, "a report of packet numbers has their bound");
static_assert(feedback_fixed_bytes + 2 * ranges_per_frame_max <= feedback_body_bytes_max);

void write_buffer(ByteWriter& out, const QueueTelemetry& buffer) noexcept {
  const auto capacity = std::clamp<std::int64_t>(buffer.capacity.count, 0, capacity_bytes_max);
  const auto occupancy = std::clamp<std::int64_t>(buffer.occupancy.count, 0, capacity);
  out.u64(static_cast<std::uint64_t>(occupancy));
  out.u64(static_cast<std::uint64_t>(buffer.drained_total.count));
  out.u64(static_cast<std::uint64_t>(capacity));
}

QueueTelemetry read_buffer(ByteReader& in, Instant at, bool is_backlogged) noexcept {
  const std::uint64_t occupancy = in.u64(), drained = in.u64_max(counter_max),
                      capacity = in.u64_max(capacity_bytes_max);
  if (occupancy > capacity) in.fail();
  return {.at = at,
          .occupancy = {static_cast<std::int64_t>(occupancy)},
          .drained_total = {static_cast<std::int64_t>(drained)},
          .capacity = {static_cast<std::int64_t>(capacity)},
          .scope = QueueScope::own_ring,
          .is_backlogged = is_backlogged};
}

// write_ranges returns how many fit before `out` is full.
std::size_t write_ranges(ByteWriter& out, const Feedback& feedback) noexcept {
  ONEHOP_CHECK(feedback.range_count <= ranges_per_frame_max);
  std::uint64_t start = feedback.from;  // smallest number that the next range may begin with
  for (std::size_t i = 0; i < feedback.range_count; ++i) {
    const PacketRange range = feedback.missing[i];
    ONEHOP_CHECK(range.first >= start);
    ONEHOP_CHECK(range.last >= range.first);
    ONEHOP_CHECK(range.last <= feedback.largest);
    const std::uint64_t gap = range.first - start, length = range.last - range.first;
    if (varint_bytes(gap) + varint_bytes(length) > out.remaining()) return i;
    out.varint(gap);
    out.varint(length);
    // A further range needs two numbers above this one; the checks above hold it below `largest`.
    ONEHOP_CHECK(i + 1 == feedback.range_count || feedback.largest - range.last >= 2);
    start = range.last + 2;
  }
  return feedback.range_count;
}

bool read_ranges(ByteReader& in, Feedback& feedback) noexcept {
  std::uint64_t start = feedback.from;
  for (std::size_t i = 0; i < feedback.range_count; ++i) {
    const std::uint64_t gap = in.varint(), length = in.varint();
    if (!in.is_ok() || start > feedback.largest) return false;
    // Differences, not sums: a gap or a length near 2^64 must not wrap into the bounds.
    if (gap > feedback.largest - start) return false;
    const std::uint64_t first = start + gap;
    if (length > feedback.largest - first) return false;
    const std::uint64_t last = first + length;
    feedback.missing[i] = {first, last};
    if (i + 1 < feedback.range_count && feedback.largest - last < 2) return false;
    start = last + 2;
  }
  return true;
}

}  // namespace

std::size_t encode_feedback(const Feedback& feedback, std::span<std::byte> out,
                            std::size_t& covered_ranges) noexcept {
  covered_ranges = 0;
  if (out.size() < feedback_body_bytes_min) return 0;
  ByteWriter body{out.first(std::min(out.size(), feedback_body_bytes_max))};
  const bool has_received = feedback.has_received;
  ONEHOP_CHECK(!has_received || feedback.from <= feedback.largest);
  ONEHOP_CHECK(has_received || feedback.range_count == 0);
  body.u8(static_cast<std::uint8_t>((has_received ? has_received_flag : 0U) |
                                    (feedback.rx_ring.is_backlogged ? rx_backlogged_flag : 0U) |
                                    (feedback.app_buffer.is_backlogged ? app_backlogged_flag : 0U) |
                                    (feedback.is_list ? list_flag : 0U) |
                                    (feedback.has_more ? more_flag : 0U)));
  body.u64(feedback.sequence);
  body.u64(has_received ? feedback.from : 0);
  body.u64(has_received ? feedback.largest : 0);
  body.u64(std::min(feedback.receive_delay_ns, receive_delay_ns_max));
  body.u64(feedback.receiver_time_ns);
  body.u64(feedback.received_bytes_total);
  body.u64(feedback.credit_bytes_total);
  write_buffer(body, feedback.rx_ring);
  write_buffer(body, feedback.app_buffer);
  body.u64(feedback.rx_ring.refused_total);
  body.u64(feedback.ce_packets_total);
  body.u64(feedback.missing_packets_total);
  body.u64(std::min(feedback.rate_offer_bytes_per_s, rate_bytes_per_s_max));
  body.u16(0);
  ONEHOP_CHECK(body.size() == feedback_fixed_bytes);
  covered_ranges = has_received ? write_ranges(body, feedback) : 0;
  store_be<std::uint16_t>(out.data() + range_count_at, static_cast<std::uint16_t>(covered_ranges));
  if (covered_ranges < feedback.range_count) {
    // The first range always fits, so the number before the one cut off is above `from`.
    constexpr std::size_t largest_at = 1 + 8 + 8;
    store_be<std::uint64_t>(out.data() + largest_at, feedback.missing[covered_ranges].first - 1);
  }
  return body.size();
}

bool decode_feedback(std::span<const std::byte> body, Feedback& out) noexcept {
  if (body.size() > feedback_body_bytes_max) return false;
  ByteReader in{body};
  const std::uint8_t flags = in.u8();
  if ((flags & ~flags_known) != 0) return false;
  out.has_received = (flags & has_received_flag) != 0;
  out.is_list = (flags & list_flag) != 0;
  out.has_more = (flags & more_flag) != 0;
  out.sequence = in.u64_max(counter_max);
  out.from = in.u64_max(counter_max);
  out.largest = in.u64_max(counter_max);
  out.receive_delay_ns = in.u64_max(receive_delay_ns_max);
  out.receiver_time_ns = in.u64_max(counter_max);
  out.received_bytes_total = in.u64_max(counter_max);
  out.credit_bytes_total = in.u64_max(counter_max);
  const Instant at{Nanos{static_cast<Nanos::rep>(out.receiver_time_ns)}};
  out.rx_ring = read_buffer(in, at, (flags & rx_backlogged_flag) != 0);
  out.app_buffer = read_buffer(in, at, (flags & app_backlogged_flag) != 0);
  out.rx_ring.refused_total = in.u64_max(counter_max);
  out.ce_packets_total = in.u64_max(counter_max);
  out.missing_packets_total = in.u64_max(counter_max);
  out.rate_offer_bytes_per_s = in.u64_max(rate_bytes_per_s_max);
  out.range_count = in.u16();
  if (!in.is_ok() || out.range_count > ranges_per_frame_max || out.from > out.largest) return false;
  if (!out.has_received && (out.range_count != 0 || out.largest != 0)) return false;
  return read_ranges(in, out) && in.is_done();
}

void encode_ping(const Ping& ping, std::span<std::byte> body) noexcept {
  ONEHOP_CHECK(body.size() >= ping_body_bytes_min);
  store_be(body.data(), ping.id);
  store_be(body.data() + 8, std::min(ping.feedback_interval_us, feedback_interval_us_max));
  std::memset(body.data() + ping_body_bytes_min, 0, body.size() - ping_body_bytes_min);
}

// The padding is not looked at: it is authenticated, and its size is all that it is for.
std::optional<Ping> decode_ping(std::span<const std::byte> body) noexcept {
  if (body.size() < ping_body_bytes_min) return std::nullopt;
  const Ping ping{.id = load_be<std::uint64_t>(body.data()),
                  .feedback_interval_us = load_be<std::uint32_t>(body.data() + 8)};
  if (ping.feedback_interval_us > feedback_interval_us_max) return std::nullopt;
  return ping;
}

void encode_pong(const Pong& pong, std::span<std::byte, pong_body_bytes> body) noexcept {
  store_be(body.data(), pong.id);
  store_be(body.data() + 8, std::min(pong.hold_ns, hold_ns_max));
  store_be(body.data() + 16, pong.received_bytes);
}

std::optional<Pong> decode_pong(std::span<const std::byte> body) noexcept {
  constexpr std::uint64_t udp_payload_bytes_max = 65'535 - 8;
  if (body.size() != pong_body_bytes) return std::nullopt;
  const Pong pong{.id = load_be<std::uint64_t>(body.data()),
                  .hold_ns = load_be<std::uint64_t>(body.data() + 8),
                  .received_bytes = load_be<std::uint64_t>(body.data() + 16)};
  if (pong.hold_ns > hold_ns_max || pong.received_bytes > udp_payload_bytes_max)
    return std::nullopt;
  return pong;
}

}  // namespace onehop::wire
