// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sink, the messages: what a block, a digest and a root do to a file's state. See sink_durable.cpp.
#include "engine/file/sink.hpp"

#include <algorithm>

#include "engine/base/check.hpp"
#include "engine/file/holes.hpp"

namespace onehop::file {

namespace {
// Messages taken per turn, so that completions and checkpoints are looked at in between.
constexpr std::size_t messages_per_turn_max = 64;
// Digests announced before their block, in slots. The peer announces a digest when it has sent the
// block, and it may start only what our credit allows: one pool. The rest is slack.
constexpr std::size_t announced_early_per_slot = 4;
// Blocks known but not yet in the tree: 16 GiB of data ahead of its digests, about 10 MiB of
// memory. Lower: a stalled control connection ends a fast transfer. Higher: more memory.
constexpr std::size_t entries_max = 65'536;
}  // namespace

std::size_t Sink::turn(Instant now, SpscRing<BlockRef>& to_engine,
                       SpscRing<BlockRef>& from_engine) {
  if (!has_lent_) {
    has_lent_ = true;
    checkpoint_at_ = now;
    std::uint32_t slot = 0;
    while (pool_.lend(slot)) outbox_.push_back({.data = pool_.data(slot), .slot = slot});
  }
  std::size_t moved = 0;
  BlockRef message;
  const std::size_t outbox_max = options_.slots + messages_per_turn_max;
  for (std::size_t i = 0;
       i < messages_per_turn_max && outbox_.size() < outbox_max && from_engine.pop(message); ++i) {
    handle(now, message);
    ++moved;
  }
  collect(false);
  if (!is_stopped_) checkpoint_if_due(now);
  if (pack_ && !is_stopped_) on_pack_failure(pack_->turn(now));
  tell_packed();
  for (; !outbox_.empty() && to_engine.push(outbox_.front()); ++moved) outbox_.pop_front();
  return moved;
}

void Sink::handle(Instant now, const BlockRef& message) {
  if (pack_ && message.file == pack_file(manifest_) &&
      (message.kind == FileMessageKind::block || message.kind == FileMessageKind::root))
    return on_pack(now, message);
  switch (message.kind) {
    case FileMessageKind::block: return on_block(message);
    case FileMessageKind::digest:
    case FileMessageKind::skipped: return on_digest(message);
    case FileMessageKind::root: return on_root(message);
    case FileMessageKind::checkpoint:
    case FileMessageKind::abort: return on_stop(message);
    default: return fail(message.file, FileFailure::protocol);
  }
}

bool Sink::is_in_manifest(const BlockRef& message) const noexcept {
  if (message.file >= manifest_.files.size() || !is_wanted_[message.file]) return false;
  if (message.kind == FileMessageKind::root) return true;
  const std::uint64_t blocks = blocks_of(manifest_.files[message.file].size);
  return message.offset % block_bytes == 0 && message.offset / block_bytes < blocks;
}

void Sink::on_block(const BlockRef& block) {
  ONEHOP_CHECK(block.slot < writing_.size());
  ONEHOP_CHECK(block.data == pool_.data(block.slot));
  if (is_stopped_) return give_back(block);
  const std::uint64_t index = block.offset / block_bytes;
  if (!is_in_manifest(block) ||
      block.length != block_length_at(manifest_.files[block.file].size, block.offset)) {
    give_back(block);
    return fail(block.file, FileFailure::protocol);
  }
  OpenFile* const open = is_done_[block.file] ? nullptr : open_file(block.file);
  if (is_stopped_) return give_back(block);
  if (open == nullptr || index < open->next_leaf ||
      (open->entries.contains(index) && open->entries[index].has_own)) {
    return give_back(block);
  }
  if (is_there(block.file)) {
    give_back(block);
    return fail(block.file, FileFailure::differs);
  }
  const auto [at, is_new] = open->entries.try_emplace(index);
  Entry& entry = at->second;
  entries_total_ += is_new ? 1 : 0;
  if (entry.has_announced) --announced_early_;
  entry.own = crypto::block_digest(options_.digest_kind, {block.data, block.length});
  entry.has_own = true;
  const bool is_wrong = entry.has_announced && entry.own != entry.announced;
  if (is_wrong || entries_total_ > entries_max) {
    give_back(block);
    return fail(block.file, is_wrong ? FileFailure::digest_mismatch : FileFailure::protocol);
  }
  write(*open, block);
}

/// A block of the pack, or the root over it.
void Sink::on_pack(Instant now, const BlockRef& message) {
  const Pack& pack = pack_->pack();
  if (message.kind == FileMessageKind::root) {
    if (!is_stopped_) on_pack_failure(pack_->on_root(message.digest));
    return;
  }
  if (!is_stopped_) {
    ONEHOP_CHECK(message.offset < pack.bytes());  // the engine was given its size
    ONEHOP_CHECK(message.length == block_length_at(pack.bytes(), message.offset));
    --blocks_left_;
    on_pack_failure(pack_->take(now, message));
  }
  give_back(message);
}

void Sink::on_pack_failure(const std::optional<PackFailure>& failure) {
  if (failure) fail(failure->file, failure->failure, failure->errno_value);
}

/// Runs of packed files that are in place. The folders get their times before the last is told.
void Sink::tell_packed() {
  if (!pack_) return;
  std::vector<BlockRef> told;
  while (const auto run = pack_->pop()) {
    told.push_back({.offset = run->first,
                    .length = run->count,
                    .status = static_cast<std::int32_t>(run->name_number),
                    .kind = FileMessageKind::pack_done});
    for (std::uint32_t i = 0; i < run->count; ++i)
      is_done_[pack_->pack().entries()[run->first + i]] = true;
    files_left_ -= run->count;
  }
  if (files_left_ == 0 && !std::exchange(are_folders_finished_, true))
    on_pack_failure(pack_->finish_folders());
  outbox_.insert(outbox_.end(), told.begin(), told.end());
}

void Sink::write(OpenFile& open, const BlockRef& block) {
  open.has_received = true;
  const std::uint64_t size = manifest_.files[block.file].size;
  if (block.length == 0 || (is_all_zero({block.data, block.length}) &&
                            open.part.make_hole(block.offset, block.length, size))) {
    give_back(block);
    return on_stored(open, block);
  }
  wait_for_room();
  if (is_stopped_) return give_back(block);
  writing_[block.slot] = block;
  ++open.writes_in_flight;
  io_->submit({.kind = FileOperation::Kind::write,
               .fd = open.part.fd(),
               .buffer = block.data,
               .bytes = block.length,
               .offset = block.offset,
               .tag = block.slot});
  collect(false);
}

void Sink::on_digest(const BlockRef& message) {
  if (is_stopped_) return;
  if (!is_in_manifest(message)) return fail(message.file, FileFailure::protocol);
  if (is_done_[message.file]) return;
  OpenFile* const open = open_file(message.file);
  if (open == nullptr) return;
  const std::uint64_t index = message.offset / block_bytes;
  if (index < open->next_leaf) return;
  const auto [at, is_new] = open->entries.try_emplace(index);
  Entry& entry = at->second;
  entries_total_ += is_new ? 1 : 0;
  if (entry.has_announced && entry.announced != message.digest)
    return fail(message.file, FileFailure::protocol);
  if (entry.has_announced) return;
  entry.announced = message.digest;
  entry.has_announced = true;
  if (!entry.has_own) {
    const std::vector<Claim>& claims = claims_[message.file];
    const auto claim = std::ranges::lower_bound(claims, index, {}, &Claim::block);
    const bool is_held =
        claim != claims.end() && claim->block == index && claim->digest == message.digest;
    if (is_held || existing_[message.file] == Existing::compared) {
      open->is_other = open->is_other || !is_held;
      entry.own = message.digest;
      entry.has_own = entry.is_stored = true;
    } else if (is_there(message.file)) {
      return fail(message.file, FileFailure::differs);
    } else if (message.kind == FileMessageKind::skipped ||
               ++announced_early_ > announced_early_per_slot * options_.slots) {
      return fail(message.file, FileFailure::protocol);
    }
  }
  if (entries_total_ > entries_max) return fail(message.file, FileFailure::protocol);
  if (entry.has_own && entry.own != entry.announced)
    return fail(message.file, FileFailure::digest_mismatch);
  settle(message.file, index);
}

void Sink::on_root(const BlockRef& message) {
  if (is_stopped_) return;
  if (!is_in_manifest(message)) return fail(message.file, FileFailure::protocol);
  if (is_done_[message.file]) return;
  OpenFile* const open = open_file(message.file);
  if (open == nullptr) return;
  if (open->has_root && open->root != message.digest)
    return fail(message.file, FileFailure::protocol);
  open->has_root = true;
  open->root = message.digest;
  finish_if_complete(message.file);
}

void Sink::on_stop(const BlockRef& message) {
  if (message.kind == FileMessageKind::abort)
    close();
  else if (!is_stopped_)
    make_durable();
  outbox_.push_back({.kind = FileMessageKind::checkpointed});
}

OnExist Sink::policy_of(std::uint32_t file) const noexcept {
  return options_.on_exist_of.empty() ? options_.on_exist : options_.on_exist_of[file];
}

PartOptions Sink::part_options(std::uint32_t file) const {
  PartOptions options = part_options_;
  options.on_exist = policy_of(file);
  options.is_changed = file < options_.is_changed.size() && options_.is_changed[file];
  return options;
}

Result<PartFile> Sink::open_part(std::uint32_t file) const {
  return PartFile::open(root_.get(), manifest_.files[file], part_options(file));
}

/// The state of a file that is not done; nothing when it cannot be opened, which is reported.
Sink::OpenFile* Sink::open_file(std::uint32_t file) {
  if (const auto at = open_.find(file); at != open_.end()) return at->second.get();
  if (is_there(file))
    return open_.emplace(file, std::make_unique<OpenFile>(options_.digest_kind))
        .first->second.get();
  Result<PartFile> part = open_part(file);
  if (part.has_error()) {
    fail(file, FileFailure::write_error, part.error().errno_value);
    return nullptr;
  }
  auto open = std::make_unique<OpenFile>(options_.digest_kind);
  open->part = std::move(part).value();
  for (std::string& folder : open->part.folders_made()) folders_made_.push_back(std::move(folder));
  return open_.emplace(file, std::move(open)).first->second.get();
}

/// A block is in the kernel's hands. The journal may say so: the next session compares.
void Sink::on_stored(OpenFile& open, const BlockRef& block) {
  const std::uint64_t index = block.offset / block_bytes;
  Entry& entry = open.entries.at(index);
  entry.is_stored = true;
  unsynced_bytes_ += block.length;
  const std::vector<Claim>& claims = claims_[block.file];
  const auto claim = std::ranges::lower_bound(claims, index, {}, &Claim::block);
  const Claim stored{index, entry.own};
  const bool is_recorded = claim != claims.end() && *claim == stored;
  if (!is_recorded && !open.is_sync_broken) {
    if (const int errno_value = open.part.record({&stored, 1}); errno_value != 0)
      return fail(block.file, FileFailure::write_error, errno_value);
  }
  settle(block.file, index);
}

/// One thing more is known about a block. When all is known and agrees, it goes to the tree.
void Sink::settle(std::uint32_t file, std::uint64_t block) {
  OpenFile& open = *open_.at(file);
  const auto is_matched = [](const Entry& entry) {
    return entry.is_stored && entry.has_announced && entry.own == entry.announced;
  };
  if (!is_matched(open.entries.at(block))) return;
  for (auto at = open.entries.find(open.next_leaf);
       at != open.entries.end() && is_matched(at->second); at = open.entries.find(open.next_leaf)) {
    if (manifest_.files[file].size > 0) open.tree.add(at->second.own);
    open.entries.erase(at);
    --entries_total_;
    ++open.next_leaf;
    --blocks_left_;
  }
  finish_if_complete(file);
}

void Sink::finish_if_complete(std::uint32_t file) {
  const OpenFile& open = *open_.at(file);
  if (is_stopped_ || !open.has_root || open.next_leaf < blocks_of(manifest_.files[file].size))
    return;
  ONEHOP_CHECK(open.entries.empty());
  if (open.tree.root() != open.root) return fail(file, FileFailure::root_mismatch);
  finish(file);
}

void Sink::give_back(const BlockRef& block) {
  outbox_.push_back({.data = block.data, .file = block.file, .slot = block.slot});
}

void Sink::fail(std::uint32_t file, FileFailure failure, int errno_value) {
  if (is_stopped_) return;
  is_stopped_ = true;
  outbox_.push_back(
      {.file = file, .status = errno_value, .kind = FileMessageKind::failed, .failure = failure});
}

}  // namespace onehop::file
