// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// EngineLinks: the engine core's ends of the links to the other threads. The rings and cells are
// owned by whoever composes the program and outlive the loop.
#pragma once

#include "engine/base/block.hpp"
#include "engine/base/latest.hpp"
#include "engine/base/message.hpp"
#include "engine/base/path.hpp"
#include "engine/base/spsc_ring.hpp"

namespace onehop::run {

struct EngineLinks {
  SpscRing<BlockRef>& from_file;
  SpscRing<BlockRef>& to_file;
  SpscRing<Command>& commands;
  SpscRing<Event>& events;
  Latest<PathReport>& report;      ///< written by the engine core
  const Latest<RateGrant>& grant;  ///< written by the control thread
};

/// NextWakeup: what a turn asks of its thread: sleep until `deadline`, or a frame that is wanted.
struct NextWakeup {
  Instant deadline{};
  bool is_rx_wanted = true;
};

}  // namespace onehop::run
