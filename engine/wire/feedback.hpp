// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Bodies of FEEDBACK, PING and PONG frames: layout and codec. A peer's numbers are bounded here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/base/telemetry.hpp"

namespace onehop::wire {

/// PacketRange is [first, last], both inclusive.
struct PacketRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

inline constexpr std::size_t feedback_body_bytes_max = 1200;
/// The fixed fields (see feedback.cpp) and room for one range of any size.
inline constexpr std::size_t feedback_fixed_bytes = 139;
inline constexpr std::size_t feedback_body_bytes_min = feedback_fixed_bytes + 20;
/// Ranges that one feedback frame can list at the very most (two varint bytes each at the least).
inline constexpr std::size_t ranges_per_frame_max = 500;
inline constexpr std::size_t frames_per_report_max = 4;
/// Lazy repair: a window's missing ranges in one report, more than the receiver remembers.
inline constexpr std::size_t frames_per_list_max = 128;

/// Feedback: one frame of a report. Everything in [settled of the sender, largest] that no frame of
/// the report lists is received. A report that needs several frames repeats the fields and splits
/// [.., largest] in ascending order: each speaks for its `from` to its `largest`.
///
/// A lazy report between two lists carries counters, and speaks only below the first gap.
struct Feedback {
  std::uint64_t sequence = 0;  ///< grows with each frame; older than the newest seen: ignored
  std::uint64_t from = 0;      ///< this frame speaks for [from, largest]
  std::uint64_t largest = 0;   ///< largest number this frame speaks for
  bool has_received = false;   ///< false: it speaks for no number, from and largest mean nothing
  bool is_list = false;        ///< lazy repair: one frame of the missing-range list
  bool has_more = false;       ///< a further frame of the same report follows
  std::uint64_t receive_delay_ns = 0;      ///< since `largest` arrived
  std::uint64_t receiver_time_ns = 0;      ///< the receiver's monotonic clock, for differences only
  std::uint64_t received_bytes_total = 0;  ///< file bytes accepted (first copies)
  std::uint64_t credit_bytes_total = 0;    ///< new data may start up to here (see receiver.hpp)
  /// The receiver's buffers, in file (payload) bytes. Not all of it travels: `at` is
  /// receiver_time_ns at the reader, refused_total is the ring's alone (socket overflow, ring full,
  /// softnet), and `scope` is own_ring there.
  QueueTelemetry rx_ring, app_buffer;
  std::uint64_t ce_packets_total = 0;
  std::uint64_t missing_packets_total = 0;   ///< below the largest seen, that have not come
  std::uint64_t rate_offer_bytes_per_s = 0;  ///< 0: none
  std::uint32_t range_count = 0;
  /// Ascending, disjoint, not adjacent, within [from, largest].
  std::array<PacketRange, ranges_per_frame_max> missing;
};

/// Bounds of what a peer may claim. Below 2^62 they and their sums fit a signed number.
inline constexpr std::uint64_t counter_max = (std::uint64_t{1} << 62) - 1;
inline constexpr std::uint64_t capacity_bytes_max = std::uint64_t{1} << 40;
inline constexpr std::uint64_t rate_bytes_per_s_max = std::uint64_t{1} << 40;
inline constexpr std::uint64_t receive_delay_ns_max = 3'600'000'000'000;  ///< clamped
inline constexpr std::uint64_t hold_ns_max = 10'000'000'000;

/// encode_feedback writes at most feedback_body_bytes_max bytes and returns how many. Ranges that
/// do not fit are cut off at the end and `largest` is lowered to what is covered; `covered_ranges`
/// is the number written. 0: `out` is shorter than feedback_body_bytes_min. An occupancy above its
/// capacity is sent as full (a kernel takes one packet more than its limit). Ranges that break the
/// rule of `missing` are our own bug and stop the program.
[[nodiscard]] std::size_t encode_feedback(const Feedback& feedback, std::span<std::byte> out,
                                          std::size_t& covered_ranges) noexcept;

/// decode_feedback rejects anything out of bounds: ranges out of order or outside [from, largest],
/// occupancy above capacity, capacity above 2^40, rates above 2^40, counters and numbers above
/// counter_max, wrong counts, trailing bytes. `out` is undefined after a rejection.
[[nodiscard]] bool decode_feedback(std::span<const std::byte> body, Feedback& out) noexcept;

/// Ping body: an id, the requested interval of reports, then zeros up to the size under test.
struct Ping {
  std::uint64_t id = 0;
  std::uint32_t feedback_interval_us = 0;  ///< between reports, at most 1 s; 0: as usual
};
inline constexpr std::uint32_t feedback_interval_us_max = 1'000'000;
struct Pong {
  std::uint64_t id = 0;
  std::uint64_t hold_ns = 0;         ///< at most 10 s
  std::uint64_t received_bytes = 0;  ///< UDP payload of the ping as it arrived: the path's MTU
};
inline constexpr std::size_t ping_body_bytes_min = 12;
inline constexpr std::size_t pong_body_bytes = 24;
/// encode_ping fills the whole span, padding with zeros.
void encode_ping(const Ping& ping, std::span<std::byte> body) noexcept;
[[nodiscard]] std::optional<Ping> decode_ping(std::span<const std::byte> body) noexcept;
void encode_pong(const Pong& pong, std::span<std::byte, pong_body_bytes> body) noexcept;
[[nodiscard]] std::optional<Pong> decode_pong(std::span<const std::byte> body) noexcept;

/// Violation: what a peer did that ends the session.
enum class Violation : std::uint8_t {
  none,
  acked_unsent,   ///< it acknowledged a packet number that was never sent
  acked_skipped,  ///< it acknowledged a number that was left out on purpose
};
[[nodiscard]] constexpr const char* to_string(Violation violation) noexcept {
  switch (violation) {
    case Violation::none: return "nothing";
    case Violation::acked_unsent: return "it acknowledged packets that were never sent";
    case Violation::acked_skipped: return "it acknowledged packets that were left out on purpose";
  }
  return "?";
}

}  // namespace onehop::wire
