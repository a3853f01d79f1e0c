// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Mapping owns one mmap()ed area; Umem is the chunk memory that the kernel and we share.
//
//   | rx chunk 0 | rx chunk 1 | ... | tx chunk 0 | ... |      a descriptor's address is an offset into this
//
// Only set-up allocates. The kernel charges a UMEM to RLIMIT_MEMLOCK unless the process has CAP_IPC_LOCK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop::xdp {

class Mapping {
 public:
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

class Umem {
 public:
  Umem() = default;

  /// create maps and touches the memory, so that the data path never faults. chunk_bytes is a power of two from 2048
  /// to the page size. Syscalls: mmap.
  [[nodiscard]] static Result<Umem> create(std::uint32_t chunks, std::uint32_t chunk_bytes);

  [[nodiscard]] std::byte* at(std::uint64_t offset_bytes) const noexcept { return mapping_.data() + offset_bytes; }
  [[nodiscard]] bool contains(std::uint64_t offset_bytes, std::uint64_t length_bytes) const noexcept {
    return offset_bytes < mapping_.size() && length_bytes <= mapping_.size() - offset_bytes;
  }
  [[nodiscard]] std::uint32_t chunk_of(std::uint64_t offset_bytes) const noexcept {
    return static_cast<std::uint32_t>(offset_bytes / chunk_bytes_);
  }
  [[nodiscard]] std::uint64_t offset_of(std::uint32_t chunk) const noexcept {
    return std::uint64_t{chunk} * chunk_bytes_;
  }
  [[nodiscard]] std::uint32_t chunk_bytes() const noexcept { return chunk_bytes_; }
  [[nodiscard]] std::uint32_t chunks() const noexcept { return chunks_; }
  [[nodiscard]] Bytes memory() const noexcept { return {static_cast<std::int64_t>(mapping_.size())}; }
  [[nodiscard]] std::byte* data() const noexcept { return mapping_.data(); }

 private:
  Mapping mapping_;
  std::uint32_t chunks_ = 0;
  std::uint32_t chunk_bytes_ = 0;
};

}  // namespace onehop::xdp
