// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Telemetry: what a running transfer tells observers on its own machine, ten times a second, and its form on the local
// socket: one JSON object per line.
//
//   control thread ── Latest<RateState>, Latest<TraceRow> ──▶ plane thread ── Telemetry ── line ──▶ Unix socket ──▶ watch
//
// The line (schema_version 1, type "telemetry"; keys are only ever added within a version; null where there is no value):
//
//   pid, role "send"|"recv", version, t_ns (CLOCK_MONOTONIC), phase, peer, interface, io, io_mode, law, repair, link_source
//   elapsed_ns, bytes_done, bytes_expected, goodput_bps (over about a second), eta_seconds
//   rate_bps (granted), backlog_max_bytes, bottleneck, is_degraded      these four: of a sender, else null
//   srtt_ns, packets_sent_total, packets_lost_total, retransmitted_bytes_total, auth_failures_total, cpu_seconds
//   link_rate_bps, details {sensor, alpha_permille, a_bytes, ...: what the law has}
//   buffers [{name, scope, occupancy_bytes, target_bytes, under_bytes, over_bytes, limit_bytes, capacity_bytes, drain_bps,
//             allowed_bps, takes_part, refused_total}]  in path order: tx_queue, rx_ring, app_buffer
//
// After it, when a session ends: type "end" with exit_code, bytes_total, seconds, goodput_bps. No names of files, no code, no
// key is in any of them. Pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop::watch {

inline constexpr int schema_version = 1;
inline constexpr std::size_t line_bytes_max = 64 * 1024;  // a line has about 2 KiB; longer than this is not ours

/// BufferView: one buffer on the path.
struct BufferView {
  std::string scope{"none"};          ///< "none": nobody reads it
  Bytes occupancy{}, target{};
  std::optional<Bytes> under, over;   ///< the safe range
  Bytes limit{};                      ///< the law's X_max; 0: none
  Bytes capacity{};                   ///< what the buffer itself can hold; 0: unknown
  BytesPerSecond drain{};
  std::optional<BytesPerSecond> allowed;  ///< the rate that this buffer alone would allow
  bool takes_part = false;
  std::uint64_t refused_total = 0;
};

inline constexpr std::array<std::string_view, 3> buffer_names{"tx_queue", "rx_ring", "app_buffer"};

struct Telemetry {
  std::int64_t pid = 0;
  std::string role, version, phase, peer, interface, io, io_mode, law, repair, link_source;
  Instant at{};
  Nanos elapsed{0};                   ///< since the first data frame; 0: none yet
  std::uint64_t bytes_done = 0, bytes_expected = 0;
  BytesPerSecond goodput{};
  std::optional<double> eta_seconds;
  std::optional<BytesPerSecond> rate; ///< granted; absent on the receiving end
  Bytes backlog_max{};
  std::string bottleneck;             ///< empty on the receiving end
  bool is_degraded = false;
  Nanos srtt{0};
  std::uint64_t packets_sent_total = 0, packets_lost_total = 0, retransmitted_bytes_total = 0, auth_failures_total = 0;
  double cpu_seconds = 0;
  std::optional<BytesPerSecond> link_rate;
  std::string sensor{"none"};
  std::vector<std::pair<std::string, std::int64_t>> details;  ///< key with unit, value
  std::array<BufferView, 3> buffers{};
};

/// Ended: a session's last words.
struct Ended {
  int exit_code = 0;
  std::uint64_t bytes_total = 0;
  double seconds = 0;
  BytesPerSecond goodput{};
};

/// line_of is the object without the newline.
[[nodiscard]] std::string line_of(const Telemetry& telemetry);
[[nodiscard]] std::string line_of(const Ended& ended);

/// Refused: the transfer has no place for one more observer.
struct Refused {
  std::string reason;
};
[[nodiscard]] std::string line_of(const Refused& refused);

using Message = std::variant<Telemetry, Ended, Refused>;
/// read_line is the inverse. Whatever a stranger wrote: numbers are bounded, texts are printable ASCII and short. An object of
/// another schema version is an error that says so; a type that it does not know is one, too.
[[nodiscard]] Result<Message> read_line(std::string_view line);

}  // namespace onehop::watch
