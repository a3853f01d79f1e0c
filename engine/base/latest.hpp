// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Latest<T>: a cell that holds the newest value, written by one thread and read by any. A sequence
// lock: the writer never waits, a reader retries during a write (Boehm, "Can seqlocks get along
// with programming language memory models?", MSPC 2012).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace onehop {

template <class T>
class Latest {
  static_assert(std::is_trivially_copyable_v<T>, "the value is copied word by word");
  static constexpr std::size_t words = (sizeof(T) + 7) / 8;

 public:
  Latest() { store(T{}); }
  explicit Latest(const T& value) { store(value); }

  /// store is called by the one writer.
  void store(const T& value) noexcept {
    std::array<std::uint64_t, words> copy{};
    std::memcpy(copy.data(), &value, sizeof(T));
    const std::uint64_t sequence = sequence_.load(std::memory_order_relaxed);
    sequence_.store(sequence + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < words; ++i) words_[i].store(copy[i], std::memory_order_relaxed);
    sequence_.store(sequence + 2, std::memory_order_release);
  }

  /// load returns a whole value, never a mixture of two.
  [[nodiscard]] T load() const noexcept {
    std::array<std::uint64_t, words> copy;
    for (;;) {
      const std::uint64_t before = sequence_.load(std::memory_order_acquire);
      if ((before & 1) != 0) continue;
      for (std::size_t i = 0; i < words; ++i) copy[i] = words_[i].load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (sequence_.load(std::memory_order_relaxed) == before) break;
    }
    T value;
    std::memcpy(static_cast<void*>(&value), copy.data(), sizeof(T));
    return value;
  }

 private:
  alignas(64) std::atomic<std::uint64_t> sequence_{0};  // even: stable; odd: a write is under way
  std::array<std::atomic<std::uint64_t>, words> words_{};
};

}  // namespace onehop
