// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Mapping: owns one mmap()ed area. Movable; the area goes with the last owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/base/result.hpp"

namespace onehop {

class Mapping {
 public:
  /// Pages: `now` for what is used again and again; `when_touched` where most of it may never be.
  enum class Pages : std::uint8_t { now, when_touched };
  /// zeroed maps `bytes` of zeros, whose pages take memory when they are first touched. Errors:
  /// io_unavailable when the address space is exhausted.
  [[nodiscard]] static Result<Mapping> zeroed(std::size_t bytes);
  /// frame_memory maps `bytes` of zeroed memory for data on its way: huge pages, and all of them
  /// now, where the kernel can (MADV_HUGEPAGE, MADV_POPULATE_WRITE since Linux 5.14; both are
  /// hints), so that the data path neither faults nor walks the page table for each frame. Set-up
  /// only. Errors: as zeroed().
  [[nodiscard]] static Result<Mapping> frame_memory(std::size_t bytes, Pages pages = Pages::now);

  /// make_present gives pages to `bytes` from `offset` on, within size(). A hint, as above: where
  /// the kernel cannot, they come when they are touched. Any thread.
  void make_present(std::size_t offset, std::size_t bytes) const noexcept;

  [[nodiscard]] std::byte* data() const noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return memory_.get_deleter().bytes; }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* address) const noexcept;
  };
  std::unique_ptr<std::byte, Unmap> memory_;
};

}  // namespace onehop
