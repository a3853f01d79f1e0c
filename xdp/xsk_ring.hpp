// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The four AF_XDP rings as pure data over memory shared with the kernel. No system call here; tests run them on plain
// memory.
//
//   fill        ours ─▶ kernel  chunks it may receive into      ProducerRing<std::uint64_t>
//   rx          kernel ─▶ ours  frames received                 ConsumerRing<xdp_desc>
//   tx          ours ─▶ kernel  frames to send                  ProducerRing<xdp_desc>
//   completion  kernel ─▶ ours  chunks it is done with          ConsumerRing<std::uint64_t>
//
//   entries   [ .. | done | in use .. in use | free ..]   indices run through all 32 bits and wrap; index & mask is
//                         ^ consumer           ^ producer  the slot; producer - consumer is the fill level
//
// Each index has one writer. We keep a cached copy of the other side's, and load it again (acquire, pairs with the
// kernel's release) only when the cached one leaves too little. The engine core owns all of them.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/base/check.hpp"
#include "xdp/uapi.hpp"

namespace onehop::xdp {

/// RingMemory: where one ring lies. `size` is a power of two.
struct RingMemory {
  std::uint32_t* producer = nullptr;
  std::uint32_t* consumer = nullptr;
  std::uint32_t* flags = nullptr;
  void* entries = nullptr;
  std::uint32_t size = 0;
};

namespace detail {
inline std::uint32_t load_acquire(std::uint32_t* index) noexcept {
  return std::atomic_ref<std::uint32_t>{*index}.load(std::memory_order_acquire);
}
inline void store_release(std::uint32_t* index, std::uint32_t value) noexcept {
  std::atomic_ref<std::uint32_t>{*index}.store(value, std::memory_order_release);
}
inline std::uint32_t load_relaxed(std::uint32_t* word) noexcept {
  return std::atomic_ref<std::uint32_t>{*word}.load(std::memory_order_relaxed);
}
}  // namespace detail

/// ProducerRing: we put in, the kernel takes out.
template <class Entry>
class ProducerRing {
 public:
  ProducerRing() = default;

  /// Attaches to a ring in whatever state its indices are.
  explicit ProducerRing(const RingMemory& memory) noexcept
      : memory_{memory},
        produced_{detail::load_relaxed(memory.producer)},
        consumed_seen_{detail::load_acquire(memory.consumer)} {
    ONEHOP_CHECK(memory.size != 0 && (memory.size & (memory.size - 1)) == 0);
  }

  /// push writes one entry that publish() will show to the kernel. False: the ring is full.
  [[nodiscard]] bool push(const Entry& entry) noexcept {
    if (produced_ - consumed_seen_ == memory_.size) {
      consumed_seen_ = detail::load_acquire(memory_.consumer);
      if (produced_ - consumed_seen_ == memory_.size) return false;
    }
    static_cast<Entry*>(memory_.entries)[produced_ & (memory_.size - 1)] = entry;
    ++produced_;
    return true;
  }

  /// publish shows all pushed entries: one release store, which pairs with the kernel's acquire load.
  void publish() noexcept { detail::store_release(memory_.producer, produced_); }

  /// unconsumed counts the entries, pushed or published, that the kernel has not taken. A kernel that shows an index
  /// outside the ring would be a broken one; the count is then too large for the ring and the caller's check fires.
  [[nodiscard]] std::uint32_t unconsumed() noexcept {
    consumed_seen_ = detail::load_acquire(memory_.consumer);
    return produced_ - consumed_seen_;
  }

  [[nodiscard]] bool needs_wakeup() const noexcept {
    return (detail::load_relaxed(memory_.flags) & XDP_RING_NEED_WAKEUP) != 0;
  }
  [[nodiscard]] std::uint32_t size() const noexcept { return memory_.size; }

 private:
  RingMemory memory_{};
  std::uint32_t produced_ = 0;       ///< ours; ahead of the shared index until publish()
  std::uint32_t consumed_seen_ = 0;  ///< the kernel's index when last looked at: never ahead of the true one
};

/// ConsumerRing: the kernel puts in, we take out.
template <class Entry>
class ConsumerRing {
 public:
  ConsumerRing() = default;

  explicit ConsumerRing(const RingMemory& memory) noexcept
      : memory_{memory},
        consumed_{detail::load_relaxed(memory.consumer)},
        produced_seen_{detail::load_acquire(memory.producer)} {
    ONEHOP_CHECK(memory.size != 0 && (memory.size & (memory.size - 1)) == 0);
  }

  /// acquire says how many entries can be read now, at most `entries_max`: at most one acquire load.
  [[nodiscard]] std::uint32_t acquire(std::uint32_t entries_max) noexcept {
    if (produced_seen_ - consumed_ < entries_max) produced_seen_ = detail::load_acquire(memory_.producer);
    const std::uint32_t ready = produced_seen_ - consumed_;
    ONEHOP_CHECK(ready <= memory_.size);
    return ready < entries_max ? ready : entries_max;
  }

  /// The i-th of the acquired entries, valid until release().
  [[nodiscard]] const Entry& operator[](std::uint32_t i) const noexcept {
    return static_cast<const Entry*>(memory_.entries)[(consumed_ + i) & (memory_.size - 1)];
  }

  /// release gives the first n entries back to the kernel: one release store.
  void release(std::uint32_t n) noexcept {
    ONEHOP_CHECK(n <= produced_seen_ - consumed_);
    consumed_ += n;
    detail::store_release(memory_.consumer, consumed_);
  }

  /// waiting counts what the kernel has put in and we have not released.
  [[nodiscard]] std::uint32_t waiting() noexcept {
    produced_seen_ = detail::load_acquire(memory_.producer);
    return produced_seen_ - consumed_;
  }

  [[nodiscard]] std::uint32_t size() const noexcept { return memory_.size; }

 private:
  RingMemory memory_{};
  std::uint32_t consumed_ = 0;
  std::uint32_t produced_seen_ = 0;
};

}  // namespace onehop::xdp
