// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Engine: the running engine core of one session with its links, whatever port it drives. The loop
// is a template instantiated once per port (ports.cpp); this is the seam where the choice made on
// the command line ends.
#pragma once

#include <functional>

#include "control/rate/rate_loop.hpp"
#include "engine/base/file_message.hpp"
#include "engine/base/latest.hpp"
#include "engine/run/engine_thread.hpp"
#include "engine/run/links.hpp"

namespace onehop::transfer {

/// RingSizes: such that no ring is ever what waits. Block slots are at most 256, messages come in
/// batches of at most 1000.
struct RingSizes {
  std::size_t blocks = 1024, file_messages = 1024, commands = 1024, events = 4096;
};

/// SessionLinks: the links between the threads of one session, and nothing else shared.
struct SessionLinks {
  explicit SessionLinks(const RingSizes& sizes = {})
      : file{sizes.blocks, sizes.file_messages}, commands{sizes.commands}, events{sizes.events} {}

  FileRings file;
  SpscRing<Command> commands;
  SpscRing<Event> events;
  Latest<PathReport> report;
  Latest<RateGrant> grant;
  Latest<rate::RateState> state;
  Latest<Limits> limits;
  Latest<BytesPerSecond> rate_offer;  ///< receiving: what the sender is told to bring at most

  [[nodiscard]] run::EngineLinks for_engine() {
    return {file.to_engine, file.from_engine, commands, events, report, grant};
  }
  [[nodiscard]] rate::RateCells for_rate() { return {report, limits, grant, state}; }
};

struct Engine {
  /// start runs the loop on `thread`. It owns the loop and holds the address of `thread`, so an
  /// Engine is never moved.
  std::function<Result<void>(const run::EngineThreadConfig&)> start;
  run::EngineThread thread;  ///< goes first, and joins: the loop outlives it
};

}  // namespace onehop::transfer
