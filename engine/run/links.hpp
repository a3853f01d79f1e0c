// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// EngineLinks: the engine core's ends of the links to the other threads. The rings and cells are
// owned by whoever composes the program and outlive the loop.
#pragma once

#include "engine/base/block.hpp"
#include "engine/base/check.hpp"
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

/// Outlet: the producing end of a ring, with room for the one item that did not fit. Whoever takes
/// from elsewhere only while can_put() never loses an item and never waits.
template <class T>
class Outlet {
 public:
  explicit Outlet(SpscRing<T>& ring) noexcept : ring_{ring} {}

  /// can_put retries the held item; true when the next put() is allowed.
  [[nodiscard]] bool can_put() noexcept {
    if (has_held_ && ring_.push(held_)) has_held_ = false;
    return !has_held_;
  }
  void put(const T& item) noexcept {
    ONEHOP_CHECK(!has_held_);
    if (ring_.push(item)) return;
    held_ = item;
    has_held_ = true;
  }

 private:
  SpscRing<T>& ring_;
  T held_{};
  bool has_held_ = false;
};

/// NextWakeup: what a turn asks of its thread: sleep until `deadline`, or a frame that is wanted.
struct NextWakeup {
  Instant deadline{};
  bool is_rx_wanted = true;
};

}  // namespace onehop::run
