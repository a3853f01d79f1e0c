// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ZeroedArray: a fixed number of items of which few may ever be used. Its memory is zero and
// untouched: a page costs its fault when it is first used. A vector, and calloc where the memory is
// not new, write all of them at the start, also for a transfer of 1 KiB.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "engine/base/memory.hpp"
#include "engine/base/system/mapping.hpp"

namespace onehop {

template <class T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T>,
                "its items begin as bytes of zero, and end without destructors");

 public:
  /// Maps the memory, and never again. It throws MemoryRefused.
  explicit ZeroedArray(std::size_t count) {
    auto memory = Mapping::zeroed(count * sizeof(T));
    if (memory.has_error()) throw MemoryRefused{memory.error()};
    memory_ = std::move(memory).value();
  }
  [[nodiscard]] T& operator[](std::size_t at) noexcept { return items()[at]; }
  [[nodiscard]] const T& operator[](std::size_t at) const noexcept { return items()[at]; }

 private:
  [[nodiscard]] T* items() const noexcept { return reinterpret_cast<T*>(memory_.data()); }

  Mapping memory_;
};

}  // namespace onehop
