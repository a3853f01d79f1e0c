// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PackRoots: the roots of a chapter's packed records. Messages tell of runs of records, not of
// their roots, so the file thread leaves them here for whoever reports what became of each file.
//
//   sending     PackSource ── set() ──▶ PackRoots ──▶ find() ── session
//   receiving   PackSink   ── set() ──▶
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/block.hpp"

namespace onehop::list {

class PackRoots {
 public:
  explicit PackRoots(std::size_t records) : slots_(records) {}

  [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
  /// set is the file thread's. A record has one root: another call changes nothing.
  void set(std::uint32_t ordinal, const Digest& root) noexcept {
    Slot& slot = slots_[ordinal];
    if (slot.is_set.load(std::memory_order_relaxed)) return;
    slot.root = root;
    slot.is_set.store(true, std::memory_order_release);  // acquire in find()
  }
  /// find: nothing where the record was not read yet. Any thread.
  [[nodiscard]] std::optional<Digest> find(std::uint32_t ordinal) const noexcept {
    const Slot& slot = slots_[ordinal];
    if (!slot.is_set.load(std::memory_order_acquire)) return std::nullopt;
    return slot.root;
  }

 private:
  struct Slot {
    Digest root{};
    std::atomic<bool> is_set = false;
  };
  std::vector<Slot> slots_;
};

}  // namespace onehop::list
