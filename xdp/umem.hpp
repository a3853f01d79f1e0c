// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Umem is the chunk memory that the kernel and we share.
//
//   | rx chunk 0 | rx chunk 1 | ... | tx chunk 0 | ... |      a descriptor's address is an offset into this
//
// Only set-up allocates. The kernel charges a UMEM to RLIMIT_MEMLOCK unless the process has CAP_IPC_LOCK.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/mapping.hpp"
#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop::xdp {

class Umem {
 public:
  Umem() = default;

  /// create maps the memory in huge pages; registering it pins it, so that the data
  /// path never faults. chunk_bytes is a power of two from 2048 to the page size. Syscalls: mmap, madvise.
  [[nodiscard]] static Result<Umem> create(std::uint32_t chunks, std::uint32_t chunk_bytes);

  [[nodiscard]] std::byte* at(std::uint64_t offset_bytes) const noexcept { return mapping_.data() + offset_bytes; }
  [[nodiscard]] bool contains(std::uint64_t offset_bytes, std::uint64_t length_bytes) const noexcept {
    return offset_bytes < mapping_.size() && length_bytes <= mapping_.size() - offset_bytes;
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
