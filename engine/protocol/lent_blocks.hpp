// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LentBlocks: the blocks lent to the Sender, from the first byte sent to the last one arrived.
//
//   add() ─▶ [ unsent, in order ] ─ next_part(), on_started() ─▶ sent ─ on_arrived() ─▶ pop_freed()
//                                                                 └─▶ pop_sent(): digest due
//
// Called by the engine core through Sender. Fixed memory.
#pragma once

#include <algorithm>
#include <boost/circular_buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/base/check.hpp"

namespace onehop::protocol {

/// BlockPart: bytes [offset, offset + length) of the block in `slot`.
struct BlockPart {
  std::uint32_t slot = 0, offset = 0, length = 0;
};

class LentBlocks {
 public:
  explicit LentBlocks(std::size_t slots)
      : slots_(slots), unsent_{slots}, freed_{slots}, sent_{2 * slots} {}

  [[nodiscard]] bool can_take() const noexcept { return lent_ < slots_.size(); }
  void add(const BlockRef& block) noexcept {
    ONEHOP_CHECK(block.slot < slots_.size());
    Slot& slot = slots_[block.slot];
    ONEHOP_CHECK(!slot.is_lent);
    slot = {.block = block, .is_lent = true};
    ++lent_;
    bytes_unsent_ += block.length;
    unsent_.push_back(block.slot);
  }
  [[nodiscard]] bool pop_freed(BlockRef& block) noexcept {
    if (freed_.empty()) return false;
    block = slots_[freed_.front()].block;
    freed_.pop_front();
    return true;
  }
  [[nodiscard]] bool pop_sent(BlockRef& block) noexcept {
    if (sent_.empty()) return false;
    block = sent_.front();
    sent_.pop_front();
    return true;
  }

  [[nodiscard]] const BlockRef& at(std::uint32_t slot) const noexcept { return slots_[slot].block; }
  [[nodiscard]] bool is_empty() const noexcept { return lent_ == 0; }
  [[nodiscard]] bool has_unsent() const noexcept { return !unsent_.empty(); }
  [[nodiscard]] std::size_t unsent_count() const noexcept { return unsent_.size(); }
  /// can_start: a first copy waits, and there is room to tell of the block when it is sent.
  [[nodiscard]] bool can_start() const noexcept { return !unsent_.empty() && !sent_.full(); }
  /// sent_count: blocks that are sent and not known to have arrived.
  [[nodiscard]] std::size_t sent_count() const noexcept { return lent_ - unsent_.size(); }
  [[nodiscard]] std::uint64_t bytes_unsent() const noexcept { return bytes_unsent_; }
  [[nodiscard]] std::uint64_t bytes_arrived() const noexcept { return bytes_arrived_; }

  /// next_part: what to send next for the first time, `bytes_max` at most.
  [[nodiscard]] BlockPart next_part(std::uint32_t bytes_max) const noexcept {
    const Slot& slot = slots_[unsent_.front()];
    return {.slot = unsent_.front(),
            .offset = slot.started,
            .length = std::min(slot.block.length - slot.started, bytes_max)};
  }
  /// on_started: the next part, of `length` bytes, was sent.
  void on_started(std::uint32_t length) noexcept {
    Slot& slot = slots_[unsent_.front()];
    slot.started += length;
    bytes_unsent_ -= length;
    if (slot.started != slot.block.length) return;
    unsent_.pop_front();
    ONEHOP_CHECK(!sent_.full());  // can_start()
    sent_.push_back(slot.block);
  }
  /// on_arrived: `length` bytes that had not arrived before; 0: an empty file's only frame.
  void on_arrived(std::uint32_t index, std::uint32_t length) noexcept {
    Slot& slot = slots_[index];
    slot.arrived += length;
    bytes_arrived_ += length;
    slot.has_empty_frame = length == 0;
    if (!slot.is_whole()) return;
    ONEHOP_CHECK(slot.is_lent);
    slot.is_lent = false;
    --lent_;
    ONEHOP_CHECK(!freed_.full());  // a slot is lent again only after pop_freed()
    freed_.push_back(index);
  }

 private:
  struct Slot {
    BlockRef block;
    std::uint32_t started = 0;  // bytes sent for the first time
    std::uint32_t arrived = 0;
    bool is_lent = false;
    bool has_empty_frame = false;  // an empty file's only frame has arrived
    [[nodiscard]] bool is_whole() const noexcept {
      return block.length == 0 ? has_empty_frame : arrived == block.length;
    }
  };

  std::vector<Slot> slots_;
  boost::circular_buffer<std::uint32_t> unsent_, freed_;
  boost::circular_buffer<BlockRef>
      sent_;  // whole values: the slot may be lent again before they are asked for
  std::size_t lent_ = 0;
  std::uint64_t bytes_unsent_ = 0, bytes_arrived_ = 0;
};

}  // namespace onehop::protocol
