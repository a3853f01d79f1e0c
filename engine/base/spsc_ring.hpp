// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SpscRing: a bounded queue between exactly one producing and one consuming thread. It never blocks
// or allocates after construction. Both sides can read its occupancy, which the laws use.
//
//   head_ (producer writes)   [ free | item item item | free ]   tail_ (consumer writes)
//
// Each side caches the other's index, so that shared lines are touched once per batch.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/base/check.hpp"
#include "engine/base/zeroed_array.hpp"

namespace onehop {

template <class T>
class SpscRing {
  static_assert(std::is_trivially_copyable_v<T>,
                "items are copied between threads without constructors");

 public:
  /// The capacity is rounded up to a power of two.
  explicit SpscRing(std::size_t capacity) : mask_{std::bit_ceil(capacity) - 1}, items_{mask_ + 1} {
    ONEHOP_CHECK(capacity > 0);
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return mask_ + 1; }

  /// has_room is called by the producer. A producer that takes from elsewhere only while it is true
  /// can put() each item here, loses none and never waits.
  [[nodiscard]] bool has_room() noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (head - cached_tail_ <= mask_) return true;
    cached_tail_ = tail_.load(std::memory_order_acquire);  // partner: release in pop()
    return head - cached_tail_ <= mask_;
  }

  /// push is called by the producer; false means full.
  [[nodiscard]] bool push(const T& item) noexcept {
    if (!has_room()) return false;
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    items_[head & mask_] = item;
    head_.store(head + 1, std::memory_order_release);  // partner: acquire in pop()
    return true;
  }
  /// put is push() after has_room().
  void put(const T& item) noexcept {
    const bool is_pushed = push(item);
    ONEHOP_CHECK(is_pushed);
  }

  /// pop is called by the consumer; false means empty.
  [[nodiscard]] bool pop(T& item) noexcept {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == cached_head_) {
      cached_head_ = head_.load(std::memory_order_acquire);  // partner: release in push()
      if (tail == cached_head_) return false;
    }
    item = items_[tail & mask_];
    tail_.store(tail + 1, std::memory_order_release);  // partner: acquire in push()
    return true;
  }

  /// size may be called by either side; exact for the caller's own end, a bound for the other's.
  [[nodiscard]] std::size_t size() const noexcept {
    const std::uint64_t tail = tail_.load(std::memory_order_acquire);
    const std::uint64_t head = head_.load(std::memory_order_acquire);
    return static_cast<std::size_t>(head - tail);
  }
  [[nodiscard]] bool is_empty() const noexcept { return size() == 0; }

 private:
  static constexpr std::size_t line_bytes = 64;
  const std::size_t mask_;
  ZeroedArray<T> items_;
  alignas(line_bytes) std::atomic<std::uint64_t> head_{0};  // written by the producer
  std::uint64_t cached_tail_ = 0;                           // the producer's copy
  alignas(line_bytes) std::atomic<std::uint64_t> tail_{0};  // written by the consumer
  std::uint64_t cached_head_ = 0;                           // the consumer's copy
};

}  // namespace onehop
