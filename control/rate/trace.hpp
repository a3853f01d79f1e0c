// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// TraceWriter: one CSV row per control tick, for plots and for arguments. Owns its file. Called by
// the control thread alone; rows are gathered in memory and written in large pieces. Columns are
// only ever added at the end; what a law does not have is an empty cell, never a zero.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/law/controller.hpp"
#include "control/rate/bottleneck_share.hpp"
#include "engine/base/result.hpp"

namespace onehop::rate {

/// name_of is the word of a bottleneck, or of a sensor, in traces and reports.
[[nodiscard]] const char* name_of(Bottleneck bottleneck) noexcept;
[[nodiscard]] const char* name_of(law::QueueSensor sensor) noexcept;
/// columns_of: what single laws add to a row, by its names in the trace.
using DetailColumns = std::array<law::LawColumn, 13>;
[[nodiscard]] DetailColumns columns_of(const law::LawDetails& details) noexcept;

struct TraceHeader {
  std::string command_line;
  std::string version;
  std::string config;
  law::LawColumns law_columns{};  ///< names of the columns that the law adds, at the end
};

/// TraceRow is what RateLoop knows after one tick.
struct TraceRow {
  Instant at{};
  law::LawTrace law;
  std::string_view law_name;  ///< a word without comma
  Nanos srtt{0};
  std::uint64_t turns = 0, wakeups = 0, syscalls = 0;  ///< since the last row
  std::uint64_t refused_total = 0;
  std::uint64_t lost_total = 0;
  std::string_view link_source{"none"};  ///< who read the facts: "nl80211+softnet"; without comma
  law::LinkFacts facts;
  Bytes tx_drained_total{};                ///< wire bytes that have left the tx queue
  BottleneckShares bottleneck_permille{};  ///< of the last 2 s; not in the file
  std::optional<Nanos>
      cpu_total;  ///< user and system time of this process; absent where nobody reads it
};

class TraceWriter {
 public:
  /// open creates the file and writes its head. Syscalls: open, write.
  [[nodiscard]] static Result<TraceWriter> open(const std::string& path, const TraceHeader& header);
  void write(const TraceRow& row) noexcept { write_line(row, false); }
  /// close writes what is left and tells of any write that failed. Syscalls: write, close.
  [[nodiscard]] Result<void> close();

 private:
  struct Closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  TraceWriter(std::string path, std::FILE* file);
  void write_line(const TraceRow& row, bool is_head) noexcept;
  std::string path_;
  std::unique_ptr<std::vector<char>> buffer_;  // outlives file_
  std::unique_ptr<std::FILE, Closer> file_;
  std::string line_;
  int failed_errno_ = 0;
};

}  // namespace onehop::rate
