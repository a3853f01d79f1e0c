// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// BlockPool: the block buffers of one session, one mapping, lent out by slot.
//
// The file thread owns the list of free slots. Lending is last in, first out: the buffer that came
// back last is the one whose lines are still in the cache. The bytes are left out of core dumps
// (MADV_DONTDUMP): they are users' files. It never grows.
//
// A slot has no pages until it is used: to clear the whole pool takes longer than a small file, and
// most sessions use a part of it. Sending, the file thread makes a slot present when it reads into
// it. Receiving, the engine core touches it first: so the file thread is a few slots ahead.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/base/check.hpp"
#include "engine/base/memory.hpp"
#include "engine/base/system/mapping.hpp"

namespace onehop::disk {

/// Slots per session. Too few: the sender waits for the peer's acknowledgements, the receiver's
/// disk closes the window at each stall. Too many: the working set leaves the cache. 96 x 256 KiB
/// cover 24 MiB in flight, 128 cover a disk stall of 0.4 s at 600 Mbit/s.
inline constexpr std::size_t sender_slots = 96;
inline constexpr std::size_t receiver_slots = 128;
/// Slots that have pages beyond the one that came back last, while so many blocks are still to
/// come. Fewer: a fast link fills them between two visits of the file thread, and the engine core
/// waits for the kernel to clear the next. More: memory that is never used.
inline constexpr std::size_t slots_ahead = 16;

class BlockPool {
 public:
  /// Syscalls: mmap, madvise. Throws MemoryRefused when the address space is exhausted.
  explicit BlockPool(std::size_t slots) : is_lent_(slots, false) {
    ONEHOP_CHECK(slots > 0);
    auto memory = Mapping::frame_memory(slots * block_bytes, Mapping::Pages::when_touched);
    if (!memory.has_value()) throw MemoryRefused{memory.error()};
    memory_ = std::move(memory).value();
    ONEHOP_CHECK(::madvise(memory_.data(), memory_.size(), MADV_DONTDUMP) == 0);
    free_.reserve(slots);
    for (std::size_t slot = slots; slot-- > 0;) free_.push_back(static_cast<std::uint32_t>(slot));
  }
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  [[nodiscard]] std::size_t slots() const noexcept { return is_lent_.size(); }
  [[nodiscard]] std::byte* data(std::uint32_t slot) const noexcept {
    ONEHOP_CHECK(slot < slots());
    return memory_.data() + static_cast<std::size_t>(slot) * block_bytes;
  }

  /// make_present gives pages to the slots below `slots`, and to those of the last huge page. One
  /// madvise() where some have none yet.
  void make_present(std::size_t slots) noexcept {
    constexpr std::size_t step = (std::size_t{2} << 20) / block_bytes;
    const std::size_t end = std::min((slots + step - 1) / step * step, this->slots());
    if (end <= present_) return;
    memory_.make_present(present_ * block_bytes, (end - present_) * block_bytes);
    present_ = end;
  }

  [[nodiscard]] std::size_t free_slots() const noexcept { return free_.size(); }
  /// lend takes a free slot; false when none is left.
  [[nodiscard]] bool lend(std::uint32_t& slot) noexcept {
    if (free_.empty()) return false;
    slot = free_.back();
    free_.pop_back();
    is_lent_[slot] = true;
    return true;
  }
  /// give_back returns a lent slot. One that was not lent stops the program.
  void give_back(std::uint32_t slot) noexcept {
    ONEHOP_CHECK(slot < slots());
    ONEHOP_CHECK(is_lent_[slot]);
    is_lent_[slot] = false;
    free_.push_back(slot);
  }

 private:
  Mapping memory_;
  std::size_t present_ = 0;
  std::vector<std::uint32_t> free_;  // a stack; its capacity is reserved once
  std::vector<bool> is_lent_;
};

}  // namespace onehop::disk
