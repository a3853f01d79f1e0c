// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Engine: the running engine core of one session with its links, whatever port it drives. The loop
// is a template instantiated once per port (ports.cpp); this is the seam where the choice made on
// the command line ends.
#pragma once

#include <functional>

#include "control/rate/trace.hpp"
#include "engine/base/file_message.hpp"
#include "engine/base/latest.hpp"
#include "engine/run/engine_thread.hpp"
#include "engine/run/links.hpp"

namespace onehop::transfer {

/// SessionLinks: the links between the threads of one session, and nothing else shared.
struct SessionLinks {
  // Sized so that no ring is ever what waits: block slots are at most 256, messages come in batches
  // of at most 1000.
  FileRings file;
  SpscRing<Command> commands{1024};
  SpscRing<Event> events{4096};
  Latest<PathReport> report;
  Latest<RateGrant> grant;
  Latest<rate::RateState> state;
  Latest<Limits> limits;
  Latest<BytesPerSecond> rate_offer;  ///< receiving: what the sender is told to bring at most

  [[nodiscard]] run::EngineLinks for_engine() {
    return {file.to_engine, file.from_engine, commands, events, report, grant};
  }
};

struct Engine {
  /// start runs the loop on `thread`. It owns the loop and holds the address of `thread`, so an
  /// Engine is never moved.
  std::function<Result<void>(const run::EngineThreadConfig&)> start;
  run::EngineThread thread;  ///< goes first, and joins: the loop outlives it
};

}  // namespace onehop::transfer
