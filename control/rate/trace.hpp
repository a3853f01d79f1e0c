// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// TraceWriter: one CSV row per control tick, for plots and analysis. Owns its file. Called by the
// control thread alone; rows are gathered in memory and written in large pieces. New columns are
// only added at the end; a value that a law does not have is an empty cell, never a zero.
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
/// DetailColumn: a number that a law may have, as a column of the trace and a line of `watch`. A
/// name says its unit at its end, and holds no comma.
struct DetailColumn {
  const char* name = nullptr;
  std::optional<std::int64_t> value;
};
/// columns_of: what single laws add to a row, by its names in the trace.
using DetailColumns = std::array<DetailColumn, 13>;
[[nodiscard]] DetailColumns columns_of(const law::LawDetails& details) noexcept;

/// BufferUse: what a buffer held while data flowed, weighted by time; wire bytes.
struct BufferUse {
  Bytes p50{}, p99{}, max{};
  /// Time empty: the lower queue's while data waited that might go, the receiver's while it flowed.
  Nanos underflow{0};
};

/// RateState is what RateLoop knows after one tick: what traces, progress, watch and the admin
/// socket show. Written by the control thread alone.
struct RateState {
  Instant at{};
  law::LawTrace law;
  RateGrant grant;                           ///< after the limits by silence and caps
  Bottleneck bottleneck = Bottleneck::none;  ///< the law's, or the cap
  /// What the law reports once (control/law/notice.hpp), as bits that stay.
  std::uint32_t notices = 0;
  PathReport path;
  law::LinkFacts facts;
  std::optional<Nanos> cpu_total;  ///< user and system time of this process; absent if it is not
                                   ///< read
  // The members below are not in the file, and as old as the last publication.
  BottleneckShares bottleneck_permille{};  ///< of the last 2 s
  BufferUse tx_queue, rx_ring, app_buffer;
  Bytes tx_queue_mean{};    ///< as the percentiles
  Bytes tx_queue_target{};  ///< newest target, wire bytes
};

struct TraceHeader {
  std::string command_line;
  std::string version;
  std::string config;
};

class TraceWriter {
 public:
  /// open creates the file and writes its head. Syscalls: open, write.
  [[nodiscard]] static Result<TraceWriter> open(const std::string& path, const TraceHeader& header);
  /// write adds a row: turns, wakeups and syscalls are those since `before`. `law` and `source`
  /// (the facts' sources: "nl80211+softnet") contain no comma.
  void write(const RateState& state, const DataPathCounters& before, std::string_view law,
             std::string_view source) noexcept {
    write_line(state, before, law, source, false);
  }
  /// close writes what is left and reports any write that failed. Syscalls: write, close.
  [[nodiscard]] Result<void> close();

 private:
  struct Closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  TraceWriter(std::string path, std::FILE* file);
  void write_line(const RateState& state, const DataPathCounters& before, std::string_view law,
                  std::string_view source, bool is_head) noexcept;
  std::string path_;
  std::unique_ptr<std::vector<char>> buffer_;  // outlives file_
  std::unique_ptr<std::FILE, Closer> file_;
  std::string line_;
  int failed_errno_ = 0;
};

}  // namespace onehop::rate
