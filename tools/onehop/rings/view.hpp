// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What was seen of rings, for people (lines of text, for a terminal or a file) and for programs
// (the body of a JSON event per socket), and thresholds for scripts. Pure.
//
//   rx          [#####                                            ]   12 of 2048
//               p50 3  p99 40  max 112  83100/s  |#__       |
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "engine/base/units.hpp"
#include "tools/onehop/rings/sampler.hpp"
#include "tools/onehop/watch/screen.hpp"

namespace onehop::rings {

/// Moment: a program and how long its present interval is.
struct Moment {
  pid_t pid = 0;
  std::string name;
  std::uint64_t samples = 0;
  Nanos at{0}, interval{0};
  /// Percentiles since the begin, not of the interval alone.
  bool is_whole = false;
};

[[nodiscard]] std::vector<watch::Line> lines_of(const Moment& moment,
                                                std::span<const Socket> sockets,
                                                const watch::ScreenOptions& options);
[[nodiscard]] nlohmann::ordered_json json_of(const Moment& moment, const Socket& socket);

/// tenths_of is how often a ring was seen full to 0..10 %, 10..20 % and so on; a full one is in the
/// last. A value that the histogram has rounded up may be in the next one.
[[nodiscard]] std::array<std::uint64_t, 10> tenths_of(const LogLinearHistogram& held,
                                                      const Capacity& capacity);

/// Threshold: "80" for any ring, or "rx=80".
struct Threshold {
  std::optional<RingKind> kind;
  double percent = 0;
  bool is_above = true;
};
/// read_threshold. Error: usage.
[[nodiscard]] Result<Threshold> read_threshold(const std::string& text, bool is_above);
/// crossed says in words which rings were at some time in the interval beyond a threshold, of the
/// most that their sizes can be.
[[nodiscard]] std::vector<std::string> crossed(std::span<const Socket> sockets,
                                               std::span<const Threshold> thresholds);

}  // namespace onehop::rings
