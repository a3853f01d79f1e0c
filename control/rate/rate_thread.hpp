// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The control thread. The loop decides when its next tick is due. The thread is not pinned: the
// engine core needs its CPU for itself, and a tick that comes a millisecond late is harmless.
#pragma once

#include <thread>

#include "control/rate/rate_loop.hpp"
#include "engine/base/result.hpp"

namespace onehop::rate {

/// start_rate_thread runs `loop` until the thread is asked to stop, which it is at once, also in a
/// wait of 20 ms. It then ticks a last time, and the state it published last holds the whole
/// session. `loop` must outlive the thread; nobody else may call its tick() meanwhile. Syscalls:
/// clone.
[[nodiscard]] Result<std::jthread> start_rate_thread(RateLoop& loop);

}  // namespace onehop::rate
