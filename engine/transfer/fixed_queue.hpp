// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FixedQueue: first in, first out, in fixed memory. One thread.
#pragma once

#include <bit>
#include <cstddef>
#include <vector>

#include "engine/base/check.hpp"

namespace onehop::transfer {

template <class T>
class FixedQueue {
 public:
  /// It holds `capacity` items at least.
  explicit FixedQueue(std::size_t capacity)
      : mask_{std::bit_ceil(capacity) - 1}, items_(mask_ + 1) {}
  [[nodiscard]] bool is_empty() const noexcept { return head_ == tail_; }
  [[nodiscard]] bool is_full() const noexcept { return tail_ - head_ > mask_; }
  [[nodiscard]] std::size_t size() const noexcept { return tail_ - head_; }
  void push(const T& item) noexcept {
    ONEHOP_CHECK(!is_full());
    items_[tail_++ & mask_] = item;
  }
  [[nodiscard]] T& front() noexcept { return items_[head_ & mask_]; }
  [[nodiscard]] const T& front() const noexcept { return items_[head_ & mask_]; }
  void pop() noexcept { ++head_; }

 private:
  std::size_t mask_;
  std::vector<T> items_;
  std::size_t head_ = 0, tail_ = 0;
};

}  // namespace onehop::transfer
