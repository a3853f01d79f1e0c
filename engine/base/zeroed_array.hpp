// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ZeroedArray: a fixed number of items of which few may ever be used. Its memory is zero and
// untouched: a page costs its fault when it is first used. A vector, and calloc where the memory is
// not new, write all of them at the start, also for a transfer of 1 KiB.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

namespace onehop {

template <class T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 4096,
                "its items begin as bytes of zero, and end without destructors");

 public:
  /// Maps the memory, and never again. It throws std::bad_alloc.
  explicit ZeroedArray(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    void* const memory = bytes / sizeof(T) == count ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                                    : MAP_FAILED;
    if (memory == MAP_FAILED) throw std::bad_alloc{};
    items_ = {static_cast<T*>(memory), Unmap{bytes}};
  }
  [[nodiscard]] T& operator[](std::size_t at) noexcept { return items_.get()[at]; }
  [[nodiscard]] const T& operator[](std::size_t at) const noexcept { return items_.get()[at]; }

 private:
  struct Unmap {
    std::size_t bytes = 0;
    void operator()(T* items) const noexcept { (void)::munmap(items, bytes); }
  };
  std::unique_ptr<T, Unmap> items_;
};

}  // namespace onehop
