// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Tables for people: never wider than 80 columns, whatever the names are. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/labs/bench/options.hpp"
#include "tools/labs/bench/points.hpp"

namespace onehop::bench {

inline constexpr std::size_t table_columns = 80;

/// table aligns rows under the head: the first column to the left, the others to the right. Where a
/// name would make a line too long, each row's name stands on a line of its own above its figures.
/// Each line ends in a newline.
[[nodiscard]] std::string table(const std::vector<std::string>& head,
                                const std::vector<std::vector<std::string>>& rows);

/// overview is one row per point, with ratios to `base` (an index, or none).
[[nodiscard]] std::string overview(const BenchOptions& options,
                                   const std::vector<PointResult>& results,
                                   std::optional<std::size_t> base);

/// details of a point that ran over a link: what woke, what was called, each thread, and how the
/// parts add up.
[[nodiscard]] std::string details(const PointResult& result);

/// figure writes a number with three significant digits and no exponent: "1.45", "0.064", "520k".
[[nodiscard]] std::string figure(double value);

}  // namespace onehop::bench
