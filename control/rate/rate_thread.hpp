// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The control thread. The loop decides when its next tick is due. The thread is not pinned: the
// engine core needs its CPU for itself, and a tick that comes a millisecond late is harmless.
#pragma once

#include <thread>

#include "control/rate/rate_loop.hpp"
#include "engine/base/result.hpp"

namespace onehop::rate {

/// start_rate_thread runs `loop` until the thread is asked to stop, and then ends at once, even in
/// a wait of 20 ms. It ticks a last time first, so the last published state covers the whole
/// session. `loop` must outlive the thread; no other thread may call its tick() meanwhile.
/// Syscalls: clone.
[[nodiscard]] Result<std::jthread> start_rate_thread(RateLoop& loop);

}  // namespace onehop::rate
