// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The points of `bench aead|digest|file|law|ring`: parts that need no link, no root and no second
// process.
#pragma once

#include <vector>

#include "tools/labs/bench/options.hpp"
#include "tools/labs/bench/points.hpp"

namespace onehop::bench {

/// part_points makes the sweep. Errors: a law or a backend that is not there (2, 9).
[[nodiscard]] Result<std::vector<Point>> part_points(const BenchOptions& options);

// Single measurements, for the sum of the parts as well. `seconds` of CPU time each.
[[nodiscard]] Result<RunResult> measure_aead(const std::string& backend, std::size_t frame_bytes,
                                             double seconds);
[[nodiscard]] RunResult measure_digest(const std::string& kind, double seconds);
[[nodiscard]] Result<RunResult> measure_law(const std::string& law, double seconds);

}  // namespace onehop::bench
