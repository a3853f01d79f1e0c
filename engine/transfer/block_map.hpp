// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// BlockMap: which blocks are whole, one bit each, in fixed memory, numbered through all files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/block.hpp"

namespace onehop::transfer {

class BlockMap {
 public:
  explicit BlockMap(std::span<const std::uint64_t> file_sizes) {
    for (const std::uint64_t size : file_sizes) {
      first_block_.push_back(left_);
      if (size != file_without_blocks) left_ += static_cast<std::size_t>(blocks_of(size));
    }
    done_.resize(left_ / 64 + 1);
  }

  [[nodiscard]] bool is_done(std::uint32_t file, std::uint64_t offset) const noexcept {
    const std::size_t number = number_of(file, offset);
    return (done_[number / 64] >> (number % 64) & 1) != 0;
  }
  void mark_done(std::uint32_t file, std::uint64_t offset) noexcept {
    const std::size_t number = number_of(file, offset);
    std::uint64_t& word = done_[number / 64];
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    if ((word & bit) == 0) --left_;
    word |= bit;
  }
  [[nodiscard]] bool is_complete() const noexcept { return left_ == 0; }

 private:
  [[nodiscard]] std::size_t number_of(std::uint32_t file, std::uint64_t offset) const noexcept {
    return first_block_[file] + static_cast<std::size_t>(offset / block_bytes);
  }

  std::vector<std::size_t> first_block_;  // by file: number of its first block
  std::vector<std::uint64_t> done_;
  std::size_t left_ = 0;
};

}  // namespace onehop::transfer
