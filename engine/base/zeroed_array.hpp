// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ZeroedArray: a fixed number of items of which few may ever be used. Its memory is zero and, where
// it is large, untouched: a page costs its fault when it is first used. A vector writes all of them
// at the start, also for a transfer of 1 KiB.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace onehop {

template <class T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignof(std::max_align_t),
                "its items begin as bytes of zero, and end without destructors");

 public:
  /// Allocates, and never again. It throws std::bad_alloc.
  explicit ZeroedArray(std::size_t count) : items_{static_cast<T*>(std::calloc(count, sizeof(T)))} {
    if (items_ == nullptr) throw std::bad_alloc{};
  }
  [[nodiscard]] T& operator[](std::size_t at) noexcept { return items_.get()[at]; }
  [[nodiscard]] const T& operator[](std::size_t at) const noexcept { return items_.get()[at]; }

 private:
  struct Free {
    void operator()(T* items) const noexcept { std::free(items); }
  };
  std::unique_ptr<T, Free> items_;
};

}  // namespace onehop
