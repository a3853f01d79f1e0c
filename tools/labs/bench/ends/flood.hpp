// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The two ends of `bench port`: the program's own port, driven without engine, encryption or
// protocol.
//
//   sender    bytes ─ copy ─▶ lend/commit ... flush ─▶ link ─▶ receive ─ copy ─▶ bytes    receiver
//               └──────────── frames_received on the Board: at most `window_frames` on their way
//
// Each runs in a process of its own until the Board says stop.
#pragma once

#include <cstdint>
#include <string>

#include "control/transfer/settings.hpp"
#include "engine/base/units.hpp"
#include "tools/labs/bench/ends/board.hpp"

namespace onehop::bench {

struct FloodSpec {
  transfer::Settings common;  ///< io, xdp_mode, frame_bytes, poll
  std::string peer;           ///< numeric address of the other end
  std::uint16_t port = 7411;
  std::uint32_t burst_frames = 44;
  std::uint32_t window_frames = 512;  ///< 0: no bound
  BytesPerSecond rate{};              ///< payload; 0: as fast as it goes
};

/// run_flood_sender and run_flood_receiver return the exit code; `far` is the board of the other
/// end.
[[nodiscard]] int run_flood_sender(const FloodSpec& spec, Board& own, const Board& far);
[[nodiscard]] int run_flood_receiver(const FloodSpec& spec, Board& own);

}  // namespace onehop::bench
