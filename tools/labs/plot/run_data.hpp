// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RunData: one trace, or one socket of a trace of rings, ready to be drawn: series over time since
// its first row, and what they say in sum. Built in one pass with memory that does not depend on
// the trace's length.
#pragma once

#include <array>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "tools/labs/plot/capacity.hpp"
#include "tools/labs/plot/samples.hpp"
#include "tools/labs/plot/trace_reader.hpp"

namespace onehop::plot {

inline constexpr std::array<std::string_view, 3> buffer_names{"tx_queue", "rx_ring", "app_buffer"};
inline constexpr std::array<std::string_view, 6> bottleneck_names{
    "tx_queue", "rx_ring", "app_buffer", "source", "cap", "none"};

/// Quantity: the series of a run. Those of buffers come three times, see of(). Units: bytes, bytes
/// per second, ns; *_step: what a total grew by since the row before. What is granted counts whole
/// frames, the buffers and what they drain count payload.
enum Quantity : std::size_t {
  granted,
  backlog,
  link_rate,
  srtt,
  queue_delay,
  wakeups,
  syscalls,
  lost_step,
  refused_step,
  cpu_step,
  drained_step,
  elapsed,           ///< time since the row before
  bottleneck_first,  ///< time with each bottleneck, bottleneck_names.size() of them
  buffer_first = bottleneck_first + bottleneck_names.size(),
};
enum BufferQuantity : std::size_t {
  occupancy,
  target,
  under,
  over,
  limit,
  drain,
  buffer_quantities
};
/// Of a trace of rings: entries held and entries in all, ring by ring, and frames dropped.
inline constexpr std::array<std::string_view, 4> ring_names{"rx", "tx", "fill", "completion"};
inline constexpr std::size_t ring_first = buffer_first + buffer_quantities * buffer_names.size();
inline constexpr std::size_t ring_drop_step = ring_first + 2 * ring_names.size();
inline constexpr std::size_t quantities = ring_drop_step + 1;
[[nodiscard]] constexpr std::size_t ring_held(std::size_t ring) noexcept {
  return ring_first + 2 * ring;
}
[[nodiscard]] constexpr std::size_t ring_entries(std::size_t ring) noexcept {
  return ring_held(ring) + 1;
}
[[nodiscard]] constexpr std::size_t of(std::size_t buffer, BufferQuantity quantity) noexcept {
  return buffer_first + buffer * buffer_quantities + quantity;
}

/// RangeShare: parts of the time in which the safe range was known. `none`: it was narrower than a
/// frame, because the buffer is too small for what may change within a control latency.
struct RangeShare {
  double below = 0, inside = 0, above = 0, none = 0;
  [[nodiscard]] double known() const noexcept { return below + inside + above + none; }
};
inline constexpr double range_bytes_min = 1500;

/// TimeMean: a value over the time for which it held.
struct TimeMean {
  double sum = 0, time = 0;
  [[nodiscard]] double mean() const noexcept { return time > 0 ? sum / time : 0; }
};

struct RunData {
  std::string label, name;  ///< name: of the file
  TraceHead head;
  std::string law;  ///< of the last row
  std::size_t rows = 0;
  Nanos first{0}, span{0};  ///< first: of the first row, on the trace's clock
  Samples samples;
  std::array<Bucket, quantities> whole{};  ///< over all rows
  std::array<TimeMean, quantities> over_time{};
  Capacity capacity;
  std::array<RangeShare, 3> ranges{};

  /// is_receiving: of a receiving end. It sets no rate, so what a law says there means nothing and
  /// is left out.
  [[nodiscard]] bool is_receiving() const { return head.config.starts_with("recv "); }
  [[nodiscard]] bool has(std::size_t quantity) const { return !whole[quantity].is_empty(); }
  /// wire_per_payload is how much more a frame is than its payload, as the trace says; 1 where it
  /// does not.
  [[nodiscard]] double wire_per_payload() const;
  /// capacity_mean is what the link could carry over the trace's time, bytes per second; 0 where
  /// that is not known.
  [[nodiscard]] double capacity_mean() const;
  void forget_law();
  /// share is the part of the time with this bottleneck, 0 .. 1.
  [[nodiscard]] double share(std::size_t bottleneck) const;
};

inline constexpr std::size_t runs_max = 12;  ///< a report has at most so many

/// read_runs reads a trace into at least `buckets_min` buckets where it has so many rows. `label`
/// empty: the file's name without folder and ending. It is one run; a trace of rings is one for
/// each socket.
[[nodiscard]] Result<std::vector<RunData>> read_runs(std::istream& in, const std::string& name,
                                                     std::string label, std::size_t buckets_min);

}  // namespace onehop::plot
