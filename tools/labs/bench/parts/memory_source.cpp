// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/parts/memory_source.hpp"

#include <cstring>
#include <utility>

namespace onehop::bench {

namespace {

/// Incompressible and cheap to make: splitmix64.
void fill(std::span<std::byte> bytes, std::uint64_t seed) noexcept {
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t x = seed += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    x ^= x >> 31;
    std::memcpy(bytes.data() + at, &x, sizeof x);
  }
}

}  // namespace

MemorySource::MemorySource(list::Manifest manifest, const MemorySourceOptions& options)
    : manifest_{std::move(manifest)}, options_{options}, pool_{options.slots} {
  is_filled_.assign(pool_.slots(), false);
  if (options_.digest_kind) tree_.emplace(*options_.digest_kind);
}

std::size_t MemorySource::turn(Instant, FileRings& rings) {
  std::size_t moved = 0;
  for (BlockRef block; rings.from_engine.pop(block); ++moved) pool_.give_back(block.slot);
  moved += flush(rings);
  const std::size_t waiting = rings.to_engine.size();
  const std::size_t made = make_blocks(waiting);
  if (made > 0) read_ahead_.on_fill(waiting);
  moved += made;
  return moved + flush(rings);
}

std::size_t MemorySource::make_blocks(std::size_t waiting) {
  std::size_t count = 0;
  std::uint32_t slot = 0;
  while (!is_over_ && waiting + outbox_.size() < read_ahead_.blocks()) {
    if (file_ == manifest_.files.size()) {
      outbox_.push_back({.kind = BlockKind::end_of_files});
      is_over_ = true;
      return count;
    }
    if (!pool_.lend(slot)) return count;
    make_block(slot);
    ++count;
  }
  return count;
}

void MemorySource::make_block(std::uint32_t slot) {
  if (!is_filled_[slot]) fill({pool_.data(slot), block_bytes}, options_.seed + slot);
  is_filled_[slot] = true;
  const std::uint64_t size = manifest_.files[file_].size;
  BlockRef block{.data = pool_.data(slot),
                 .offset = block_ * block_bytes,
                 .file = file_,
                 .length = block_length_at(size, block_ * block_bytes),
                 .slot = slot};
  if (options_.digest_kind) {
    block.digest = crypto::block_digest(*options_.digest_kind, {block.data, block.length});
    if (size > 0) tree_->add(block.digest);
  }
  outbox_.push_back(block);
  if (++block_ < blocks_of(size)) return;
  RootRead read{.file = file_};
  if (tree_) {
    read.root = tree_->root();
    tree_.emplace(*options_.digest_kind);
  }
  told_.push_back(read);
  ++file_;
  block_ = 0;
}

std::size_t MemorySource::flush(FileRings& rings) {
  std::size_t count = 0;
  for (; !outbox_.empty() && rings.to_engine.push(outbox_.front()); ++count) outbox_.pop_front();
  for (; !told_.empty() && rings.events.push(told_.front()); ++count) told_.pop_front();
  return count;
}

}  // namespace onehop::bench
