// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PatternDisk: makes and checks bytes that depend on (seed, file, offset), so a byte in the wrong
// place is seen. It stands in for files in simulations: nothing is read or written. Owns the block
// buffers that it lends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "engine/base/block.hpp"

namespace onehop::sim {

class PatternDisk {
 public:
  PatternDisk(std::uint64_t seed, std::size_t slots)
      : seed_{seed},
        slots_{static_cast<std::uint32_t>(slots)},
        memory_{std::make_unique_for_overwrite<std::byte[]>(slots * block_bytes)} {}

  void fill(BlockRef& block) const {
    const std::uint32_t whole = block.length / 8 * 8;  // of a known size a copy is one instruction
    for (std::uint32_t i = 0; i < whole; i += 8) {
      const std::uint64_t value = word(block.file, block.offset + i);
      std::memcpy(block.data + i, &value, 8);
    }
    const std::uint64_t value = word(block.file, block.offset + whole);
    std::memcpy(block.data + whole, &value, block.length - whole);
  }
  [[nodiscard]] std::uint64_t wrong_bytes(const BlockRef& block) const {
    std::uint64_t wrong = 0, found = 0;
    const std::uint32_t whole = block.length / 8 * 8;
    for (std::uint32_t i = 0; i < whole; i += 8) {
      std::memcpy(&found, block.data + i, 8);
      if (found != word(block.file, block.offset + i)) wrong += 8;
    }
    const std::uint64_t value = word(block.file, block.offset + whole);
    if (std::memcmp(block.data + whole, &value, block.length - whole) != 0) wrong += 8;
    return wrong;
  }
  [[nodiscard]] BlockRef lend(std::uint32_t slot) const {
    return {.data = memory_.get() + std::size_t{slot} * block_bytes, .slot = slot};
  }
  [[nodiscard]] std::uint32_t slots() const { return slots_; }

 private:
  [[nodiscard]] std::uint64_t word(std::uint32_t file, std::uint64_t offset) const {
    std::uint64_t x = seed_ + file * 0x9E3779B97F4A7C15ULL + offset;  // splitmix64's finaliser
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
  }
  std::uint64_t seed_;
  std::uint32_t slots_;
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace onehop::sim
