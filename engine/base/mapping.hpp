// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Mapping: owns one mmap()ed area. Movable; the area goes with the last owner.
#pragma once

#include <cstddef>
#include <utility>

#include "engine/base/result.hpp"

namespace onehop {

class Mapping {
 public:
  /// frame_memory maps `bytes` of zeroed memory for data on its way: huge pages, and all of them
  /// now, where the kernel can (MADV_HUGEPAGE, MADV_POPULATE_WRITE since Linux 5.14; both are
  /// hints), so that the data path neither faults nor walks the page table for each frame. Set-up
  /// only. Errors: io_unavailable when the address space is exhausted.
  [[nodiscard]] static Result<Mapping> frame_memory(std::size_t bytes);

  Mapping() = default;
  Mapping(void* address, std::size_t bytes) noexcept : address_{address}, bytes_{bytes} {}
  Mapping(Mapping&& other) noexcept
      : address_{std::exchange(other.address_, nullptr)}, bytes_{std::exchange(other.bytes_, 0)} {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(address_); }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

 private:
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace onehop
