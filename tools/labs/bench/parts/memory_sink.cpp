// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/parts/memory_sink.hpp"

#include <utility>

#include "engine/base/check.hpp"

namespace onehop::bench {

namespace {
constexpr std::size_t messages_per_turn_max = 64;  // as Sink has it
}

MemorySink::MemorySink(list::Manifest manifest, const MemorySinkOptions& options)
    : manifest_{std::move(manifest)},
      options_{options},
      pool_{options.slots},
      files_(manifest_.files.size()),
      files_left_{manifest_.files.size()} {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (options_.digest_kind) files_[i].tree.emplace(*options_.digest_kind);
    blocks_left_ += blocks_of(manifest_.files[i].size);
  }
}

std::size_t MemorySink::turn(Instant, FileRings& rings) {
  if (!std::exchange(has_lent_, true)) {
    std::uint32_t slot = 0;
    pool_.make_present(pool_.slots());
    while (pool_.lend(slot)) outbox_.push_back({.data = pool_.data(slot), .slot = slot});
  }
  std::size_t moved = 0;
  BlockRef block;
  for (; moved < messages_per_turn_max && rings.from_engine.pop(block); ++moved) take(block);
  FileCommand command;
  for (std::size_t i = 0; i < messages_per_turn_max && rings.commands.pop(command); ++i, ++moved)
    std::visit([this](const auto& said) { take(said); }, command);
  for (; !outbox_.empty() && rings.to_engine.push(outbox_.front()); ++moved) outbox_.pop_front();
  for (; !told_.empty() && rings.events.push(told_.front()); ++moved) told_.pop_front();
  return moved;
}

void MemorySink::take(const BlockRef& block) {
  if (block.kind == BlockKind::checkpoint) return told_.push_back(CheckpointMade{});
  if (block.kind != BlockKind::block) return fail(block.file, FileFailure::protocol);
  ONEHOP_CHECK(block.data == pool_.data(block.slot));
  outbox_.push_back({.data = block.data, .file = block.file, .slot = block.slot});
  if (has_failed_) return;
  const std::uint64_t index = block.offset / block_bytes;
  if (block.file >= files_.size() || index >= blocks_of(manifest_.files[block.file].size))
    return fail(block.file, FileFailure::protocol);
  File& file = files_[block.file];
  if (index < file.next_leaf) return;
  Entry& entry = file.entries[index];
  if (options_.digest_kind)
    entry.own = crypto::block_digest(*options_.digest_kind, {block.data, block.length});
  entry.has_own = true;
  settle(block.file, index);
}

void MemorySink::take(const AnnouncedDigest& announced) {
  if (announced.file >= files_.size()) return fail(announced.file, FileFailure::protocol);
  const std::uint64_t index = announced.offset / block_bytes;
  File& file = files_[announced.file];
  if (has_failed_ || index < file.next_leaf) return;
  Entry& entry = file.entries[index];
  entry.announced = announced.digest;
  entry.has_announced = true;
  settle(announced.file, index);
}

void MemorySink::take(const AnnouncedRoot& announced) {
  if (announced.file >= files_.size()) return fail(announced.file, FileFailure::protocol);
  files_[announced.file].has_root = true;
  files_[announced.file].root = announced.root;
  finish_if_complete(announced.file);
}

void MemorySink::settle(std::uint32_t file_index, std::uint64_t block) {
  File& file = files_[file_index];
  const auto is_whole = [](const Entry& entry) { return entry.has_own && entry.has_announced; };
  if (const Entry& entry = file.entries.at(block); !is_whole(entry))
    return;
  else if (options_.digest_kind && entry.own != entry.announced)
    return fail(file_index, FileFailure::digest_mismatch);
  for (auto at = file.entries.find(file.next_leaf);
       at != file.entries.end() && is_whole(at->second); at = file.entries.find(file.next_leaf)) {
    if (file.tree && manifest_.files[file_index].size > 0) file.tree->add(at->second.own);
    file.entries.erase(at);
    ++file.next_leaf;
    --blocks_left_;
  }
  finish_if_complete(file_index);
}

void MemorySink::finish_if_complete(std::uint32_t file_index) {
  const File& file = files_[file_index];
  if (has_failed_ || !file.has_root ||
      file.next_leaf != blocks_of(manifest_.files[file_index].size))
    return;
  if (file.tree && file.tree->root() != file.root)
    return fail(file_index, FileFailure::root_mismatch);
  told_.push_back(FileFinished{.file = file_index, .root = file.root});
  --files_left_;
}

void MemorySink::fail(std::uint32_t file, FileFailure failure) {
  if (std::exchange(has_failed_, true)) return;
  told_.push_back(FileFailed{.file = file, .failure = failure});
}

}  // namespace onehop::bench
