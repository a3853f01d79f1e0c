// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The sum of a whole's parts, measured right after it in the same round: a bare flood over the same
// port with the payload copied at both ends, the AEAD of the same frames, digests at both ends, the
// file read and written, the law's ticks.
#include <algorithm>

#include "tools/labs/bench/ends/link_points.hpp"
#include "tools/labs/bench/part_points.hpp"
#include "tools/labs/bench/parts/core_distance.hpp"
#include "tools/labs/bench/parts/file_part.hpp"
#include "tools/labs/bench/parts/hand_over.hpp"

namespace onehop::bench {

namespace {

// Of a part that has no link: 1 % of its own noise is reached in a tenth of that
constexpr double part_seconds = 0.1;
constexpr double ticks_per_second = 1000;
constexpr std::uint64_t file_bytes_max = std::uint64_t{256} << 20;

/// add_hand_over adds what no part has in it: a file's blocks pass from thread to thread, and
/// mostly from CPU to CPU, at each end.
void add_hand_over(const BenchOptions& options, Metrics& m) {
  const int file_ends = (options.source == "file" ? 1 : 0) + (options.sink == "file" ? 1 : 0);
  const auto cpus = first_two_cpus();
  if (file_ends == 0 || !cpus) return;
  const auto once = hand_over_ns_per_byte(*cpus);
  if (!once) return;
  m["hand_over_ns_per_byte"] = file_ends * *once;
  m["whole_over_parts_and_hand_over"] =
      m["cpu_ns_per_byte"] / (m["parts_ns_per_byte"] + m["hand_over_ns_per_byte"]);
}

}  // namespace

Result<void> add_parts(const BenchOptions& options, const Place& place, const Variant& variant,
                       RunResult& whole) {
  Metrics& m = whole.metrics;
  BenchOptions flood_options = options;
  flood_options.window_frames = BenchOptions{}.window_frames;
  flood_options.interval_seconds = 0;  // intervals are told of the whole
  ONEHOP_TRY(flood, run_flood(flood_options, place, variant, {}));
  m["part_port_ns_per_byte"] = flood.metrics["cpu_ns_per_byte"];
  m["part_port_busy_ns_per_byte"] = flood.metrics["busy_ns_per_byte"];
  m["flood_frames_per_second"] = flood.metrics["frames_per_second"];
  ONEHOP_TRY(aead,
             measure_aead(variant.aead, static_cast<std::size_t>(m["frame_bytes"]), part_seconds));
  m["part_aead_ns_per_byte"] = aead.metrics["cpu_ns_per_byte"];
  if (variant.digest != "none")
    m["part_digest_ns_per_byte"] =
        2 * measure_digest(variant.digest, part_seconds).metrics["cpu_ns_per_byte"];
  if (options.source == "file" || options.sink == "file") {
    ONEHOP_TRY(
        file, measure_file(variant.file_io, place.folder, std::min(options.bytes, file_bytes_max)));
    if (options.source == "file") m["part_read_ns_per_byte"] = file.metrics["read_ns_per_byte"];
    if (options.sink == "file") m["part_write_ns_per_byte"] = file.metrics["write_ns_per_byte"];
  }
  ONEHOP_TRY(law, measure_law(variant.law, part_seconds));
  m["part_law_ns_per_byte"] =
      law.metrics["ns_per_tick"] * ticks_per_second * m["seconds"] / m["bytes_total"];
  double sum = 0;
  for (const char* part : {"port", "aead", "digest", "read", "write", "law"}) {
    const auto found = m.find(std::string{"part_"} + part + "_ns_per_byte");
    if (found != m.end()) sum += found->second;
  }
  m["parts_ns_per_byte"] = sum;
  if (sum > 0) m["whole_over_parts"] = m["cpu_ns_per_byte"] / sum;
  add_hand_over(options, m);
  if (m["flood_frames_per_second"] > 0)
    m["frames_over_flood"] = m["frames_per_second"] / m["flood_frames_per_second"];
  return success();
}

}  // namespace onehop::bench
