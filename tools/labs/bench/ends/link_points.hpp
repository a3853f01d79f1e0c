// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The points of `bench loop|port`, and what they may be held against, over the link of a lab.
#pragma once

#include <string>
#include <vector>

#include "tools/labs/bench/options.hpp"
#include "tools/labs/bench/points.hpp"
#include "tools/labs/lab/link.hpp"

namespace onehop::bench {

/// Place: where the ends run.
struct Place {
  lab::HostNames hosts;
  int mtu_bytes = 1500;
  std::string folder;  ///< of source and sink files; its maker removes it
};

/// link_points makes the sweep, and the baseline's point last. `options` and `place` outlive the
/// points.
[[nodiscard]] Result<std::vector<Point>> link_points(const BenchOptions& options,
                                                     const Place& place);

/// host_points makes the sweep of `bench loop --to` and `bench serve`: this host's end alone.
/// Errors: code and address.
[[nodiscard]] Result<std::vector<Point>> host_points(const BenchOptions& options,
                                                     const Place& place);

/// Direction: which host sends. -R turns it round, --bidir takes both.
/// is_reverse, one per session
[[nodiscard]] std::vector<bool> directions(const BenchOptions& options);
[[nodiscard]] const std::string& sending_host(const Place& place, bool is_reverse);
[[nodiscard]] const std::string& receiving_host(const Place& place, bool is_reverse);
[[nodiscard]] const char* sending_address(bool is_reverse);
[[nodiscard]] const char* receiving_address(bool is_reverse);

/// iperf3_point: Debian's iperf3 as the users of it run it; `is_udp` floods with datagrams that
/// fill a frame.
[[nodiscard]] Point iperf3_point(const BenchOptions& options, const Place& place, bool is_udp);
/// quic_point: the program over quinn or s2n-quic (options.baseline) from --peers. Errors: 9 it has
/// not been built.
[[nodiscard]] Result<Point> quic_point(const BenchOptions& options, const Place& place);

/// Variant: one combination of a sweep.
struct Variant {
  std::string io, mode, poll, digest, aead, rate, file_io, law;
  std::size_t frame_bytes = 0;
  std::uint32_t burst_frames = 44;
};
/// add_parts measures the parts of a loop that has just run, and how they add up, into its metrics.
[[nodiscard]] Result<void> add_parts(const BenchOptions& options, const Place& place,
                                     const Variant& variant, RunResult& whole);
/// run_flood runs one bare flood.
[[nodiscard]] Result<RunResult> run_flood(const BenchOptions& options, const Place& place,
                                          const Variant& variant, const RunMode& mode);

}  // namespace onehop::bench
