// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Telemetry: what a running transfer tells observers on its own machine, and its form on the local
// socket: one JSON object per line.
//
//   Transfer ── Progress ──▶ main thread ── line, ten times a second ──▶ Unix socket ──▶ watch
//
// The line has schema_version 1, type "telemetry", and the members of api::Progress by their names;
// null where there is no value. rate_bps, backlog_max_bytes, bottleneck (now), bottleneck_permille
// (name: share of the last 2 s) and is_degraded are those of a sender. `sensor` and the law's own
// quantities are in `details`. Keys are only ever added
// within a version.
//
// After it, when a session ends: type "end" with exit_code, bytes_total, seconds, goodput_bps. No
// names of files, no code, no key is in any of them. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "control/transfer/api/transfer.hpp"
#include "engine/base/result.hpp"

namespace onehop::watch {

inline constexpr int schema_version = 1;
// A line has about 2 KiB; longer than this is not ours
inline constexpr std::size_t line_bytes_max = 64 * 1024;

using Telemetry = api::Progress;
using BufferView = api::Buffer;
using api::buffer_names;

/// main_bottleneck is the one that held for most of the last 2 s; without shares that of now.
[[nodiscard]] std::string_view main_bottleneck(const Telemetry& telemetry);

/// Ended: a session's last words.
struct Ended {
  int exit_code = 0;
  std::uint64_t bytes_total = 0;
  double seconds = 0;
  std::int64_t goodput_bps = 0;
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
/// read_line is the inverse. Whatever a stranger wrote: numbers are bounded, texts are printable
/// ASCII and short. An object of another schema version is an error that says so; a type that it
/// does not know is one, too.
[[nodiscard]] Result<Message> read_line(std::string_view line);

}  // namespace onehop::watch
