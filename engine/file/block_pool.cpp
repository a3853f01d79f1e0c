// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/block_pool.hpp"

#include <sys/mman.h>

#include "engine/base/check.hpp"
#include "engine/base/memory.hpp"

namespace onehop::file {

BlockPool::BlockPool(std::size_t slots) : slots_{slots}, is_lent_(slots, false) {
  ONEHOP_CHECK(slots > 0);
  auto memory = Mapping::frame_memory(slots * block_bytes);  // present at once: a small file holds what a big one does
  if (!memory.has_value()) throw MemoryRefused{memory.error()};
  memory_ = std::move(memory).value();
  ONEHOP_CHECK(::madvise(memory_.data(), memory_.size(), MADV_DONTDUMP) == 0);
  free_.reserve(slots);
  for (std::size_t slot = slots; slot-- > 0;) free_.push_back(static_cast<std::uint32_t>(slot));
}

std::byte* BlockPool::data(std::uint32_t slot) const noexcept {
  ONEHOP_CHECK(slot < slots_);
  return memory_.data() + static_cast<std::size_t>(slot) * block_bytes;
}

bool BlockPool::lend(std::uint32_t& slot) noexcept {
  if (free_.empty()) return false;
  slot = free_.back();
  free_.pop_back();
  is_lent_[slot] = true;
  return true;
}

void BlockPool::give_back(std::uint32_t slot) noexcept {
  ONEHOP_CHECK(slot < slots_);
  ONEHOP_CHECK(is_lent_[slot]);
  is_lent_[slot] = false;
  free_.push_back(slot);
}

}  // namespace onehop::file
