// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// read_trace: what `--trace FILE` wrote (control/rate/trace.hpp), row by row. A trace may come from
// anywhere: sizes are bounded, each number is checked, and an error names line and column. Any
// thread; it allocates one line.
#pragma once

#include <functional>
#include <istream>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop::plot {

inline constexpr std::size_t line_bytes_max = 64 * 1024;  // a row of ours has about 400
inline constexpr std::size_t columns_max = 512;           // ours has 66

/// TraceHead: the comment lines before the columns, as they were written; absent ones are empty.
struct TraceHead {
  std::string command_line, version, config;
  [[nodiscard]] bool is_of_rings() const { return config.starts_with("rings "); }
};

/// TraceRow: the columns that were asked for, in that order; empty cells, and columns that the
/// trace lacks, are absent.
struct TraceRow {
  Nanos at{0};
  std::span<const std::optional<double>> values;
  std::string_view bottleneck, law;  ///< valid during the call only
};

/// Table: what a file is, for messages, and the columns that it has to have beside t_ns.
struct Table {
  std::string name, what, maker;
  std::span<const std::string_view> needed;
  std::span<const std::string_view> needed_of_rings{};  ///< instead, of a trace of 'onehop rings'
};

/// read_table calls `take` for each row of a table over time.
[[nodiscard]] Result<TraceHead> read_table(std::istream& in, const Table& table,
                                           std::span<const std::string_view> wanted,
                                           const std::function<void(const TraceRow&)>& take);

/// read_trace calls `take` for each row. `name` is for messages. A trace has the columns t_ns,
/// rate_bytes_per_s and bottleneck, or socket where it is of rings, at least one row, times that
/// never go back, and a newline behind its last row. Error local_file_error where it has not.
[[nodiscard]] Result<TraceHead> read_trace(std::istream& in, const std::string& name,
                                           std::span<const std::string_view> wanted,
                                           const std::function<void(const TraceRow&)>& take);

}  // namespace onehop::plot
