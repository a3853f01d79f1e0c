// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sink, the messages: what a block, a digest and a root do to a file's state. See sink_held.cpp,
// sink_holes.cpp, sink_volumes.cpp and sink_durable.cpp.
#include "engine/sink/sink.hpp"

#include <algorithm>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/disk/entry_fault.hpp"
#include "engine/disk/holes.hpp"

namespace onehop::sink {

namespace {
// Messages taken per turn, so that completions and checkpoints are looked at in between.
constexpr std::size_t messages_per_turn_max = 64;
// Digests announced before their block, in slots. The peer announces a digest when it has sent the
// block, and it may start only what our credit allows: one pool. The rest is slack.
constexpr std::size_t announced_early_per_slot = 4;
}  // namespace

Sink::Sink(std::shared_ptr<Destination> destination, std::unique_ptr<disk::FileIo> io,
           const SinkOptions& options)
    : destination_{std::move(destination)},
      options_{options},
      io_{std::move(io)},
      pool_{options_.slots},
      cache_{destination_->options().direct_io},
      commit_{*destination_},
      writing_(options_.slots),
      held_{.reader = {destination_->options().digest_kind,
                       destination_->options().compare_key,
                       destination_->options().direct_io,
                       {}},
            .files = {},
            .there = {}} {
  ONEHOP_CHECK(io_ != nullptr);
}

std::size_t Sink::turn(Instant now, FileRings& rings) {
  take_volumes();
  if (!has_lent_) {
    has_lent_ = true;
    checkpoint_.at = now;
    // The engine core takes the one that was lent last: that is slot 0.
    std::uint32_t slot = 0;
    while (pool_.lend(slot)) outbox_.push_front({.data = pool_.data(slot), .slot = slot});
    pool_.make_present(1);
  }
  // Blocks first: as a rule a digest then finds its block.
  std::size_t moved = take_blocks(rings);
  if (has_room()) moved += take_commands(rings, messages_per_turn_max);
  submit_write();
  moved += read_held();
  collect(false);
  if (stream_) write_stream();
  if (!is_stopped_) checkpoint_if_due(now);
  if (!is_stopped_) on_pack_failure(commit_.turn(now, finish_folders()));
  tell_packed();
  end_volumes();
  for (; !outbox_.empty() && rings.to_engine.push(outbox_.front()); ++moved) outbox_.pop_front();
  for (; !told_.empty() && rings.events.push(told_.front()); ++moved) told_.pop_front();
  return moved;
}

/// has_room: what the next messages bring can wait here.
bool Sink::has_room() const noexcept {
  return outbox_.size() < options_.slots + messages_per_turn_max &&
         told_.size() < messages_per_turn_max;
}

std::size_t Sink::take_blocks(FileRings& rings) {
  std::size_t count = 0;
  BlockRef block;
  for (; count < messages_per_turn_max && has_room() && rings.from_engine.pop(block); ++count) {
    // The session said before it asked for a checkpoint what is to be in it.
    if (block.kind == BlockKind::checkpoint) take_commands(rings, rings.commands.size());
    take(block);
  }
  return count;
}

std::size_t Sink::take_commands(FileRings& rings, std::size_t count_max) {
  std::size_t count = 0;
  FileCommand command;
  for (; count < count_max && rings.commands.pop(command); ++count)
    std::visit([this](const auto& said) { take(said); }, command);
  return count;
}

void Sink::take(const BlockRef& block) {
  if (block.kind == BlockKind::checkpoint) return on_checkpoint();
  Writing* const volume = volume_of(block.file);
  if (volume == nullptr) {
    if (block.kind == BlockKind::block) give_back(block);
    return on_unknown(block.file);
  }
  switch (block.kind) {
    case BlockKind::block:
      return volume->pack && block.file == volume->list->pack_file() ? on_pack(*volume, block)
                                                                     : on_block(*volume, block);
    case BlockKind::skipped: return on_skipped(*volume, block);
    case BlockKind::hole: return on_hole(*volume, block);
    default: return fail(block.file, FileFailure::protocol);
  }
}

/// What comes late of a volume that has ended changes nothing.
void Sink::on_unknown(std::uint32_t file) {
  if (file >= taken_.end_file) fail(file, FileFailure::protocol);
}

bool Sink::is_expected(const Writing& volume, std::uint32_t file, std::uint64_t offset) {
  const std::uint32_t entry = volume.entry_of(file);
  if (entry >= volume.list->entries() || !volume.list->is_wanted(entry)) return false;
  if (volume.list->pack().contains(entry)) return false;  // of it nothing comes by itself
  const std::uint64_t blocks = blocks_of(volume.list->entry(entry).size);
  return offset % block_bytes == 0 && offset / block_bytes < blocks;
}

void Sink::on_block(Writing& volume, const BlockRef& block) {
  ONEHOP_CHECK(block.slot < writing_.size());
  ONEHOP_CHECK(block.data == pool_.data(block.slot));
  if (is_stopped_) return give_back(block);
  const std::uint64_t index = block.offset / block_bytes;
  const std::uint32_t entry_index = volume.entry_of(block.file);
  if (!is_expected(volume, block.file, block.offset) ||
      block.length != block_length_at(volume.list->entry(entry_index).size, block.offset)) {
    give_back(block);
    return fail(block.file, FileFailure::protocol);
  }
  OpenFile* const open = volume.is_done[entry_index] ? nullptr : open_file(volume, block.file);
  if (is_stopped_) return give_back(block);
  if (open == nullptr || open->is_settled(index) ||
      (open->entries.contains(index) && open->entries[index].has_own)) {
    return give_back(block);
  }
  if (volume.list->is_there(entry_index)) {
    give_back(block);
    return fail(block.file, FileFailure::differs);
  }
  const auto [at, is_new] = open->entries.try_emplace(index);
  Entry& entry = at->second;
  blocks_.entries += is_new ? 1 : 0;
  if (entry.has_announced) --blocks_.announced_early;
  entry.own = crypto::block_digest(destination_->options().digest_kind, {block.data, block.length});
  entry.has_own = true;
  const bool is_wrong = entry.has_announced && entry.own != entry.announced;
  if (is_wrong || blocks_.entries > entries_max) {
    give_back(block);
    return fail(block.file, is_wrong ? FileFailure::digest_mismatch : FileFailure::protocol);
  }
  write(*open, block);
}

/// A block of the volume's pack.
void Sink::on_pack(Writing& volume, const BlockRef& block) {
  if (!is_stopped_) {
    const list::Pack& pack = volume.list->pack();
    ONEHOP_CHECK(block.offset < pack.bytes());  // the engine was given its size
    ONEHOP_CHECK(block.length == block_length_at(pack.bytes(), block.offset));
    --blocks_.left;
    on_pack_failure(volume.pack->take(block));
    volume.list->count_written(block.length);
  }
  give_back(block);
}

void Sink::on_pack_failure(const MaybeFailure& failure) {
  if (failure) fail(failure->file, failure->failure, failure->errno_value);
}

void Sink::write(OpenFile& open, const BlockRef& block) {
  open.has_received = true;
  if (open.fault != 0) {
    give_back(block);
    return on_stored(open, block);
  }
  const bool is_piece = open.volume.list->is_stream();
  if (is_piece && stream_->is_ordered() && block.length > 0)
    return stream_->hold(open.volume.base + block.offset, block);
  const std::uint64_t size = open.volume.list->entry(open.volume.entry_of(block.file)).size;
  if (block.length == 0 || (!is_piece && disk::is_all_zero({block.data, block.length}) &&
                            open.part.make_hole(block.offset, block.length, size))) {
    give_back(block);
    return on_stored(open, block);
  }
  wait_for_room();
  if (is_stopped_) return give_back(block);
  if (!is_piece) open.part.expect(cache_, block.offset, block.length);
  ++open.writes_in_flight;
  add_to_write(block, open.volume.base + block.offset);
  const bool is_last = block.offset + block.length == size;
  if (is_piece || !open.part.is_direct() || is_last) submit_write();
}

/// The file of a block that is announced. Null: that changes nothing, or it failed.
Sink::OpenFile* Sink::open_announced(Writing& volume, std::uint32_t file, std::uint64_t offset) {
  if (is_stopped_) return nullptr;
  if (!is_expected(volume, file, offset)) {
    fail(file, FileFailure::protocol);
    return nullptr;
  }
  if (volume.is_done[volume.entry_of(file)]) return nullptr;
  OpenFile* const open = open_file(volume, file);
  return open == nullptr || open->is_settled(offset / block_bytes) ? nullptr : open;
}

void Sink::take(const AnnouncedDigest& announced) {
  const std::uint32_t file = announced.file;
  Writing* const volume = volume_of(file);
  if (volume == nullptr) return on_unknown(file);
  OpenFile* const open = open_announced(*volume, file, announced.offset);
  if (open == nullptr) return;
  // Of what is there and the same the sender says `skipped`.
  if (volume->list->is_there(volume->entry_of(file))) return fail(file, FileFailure::differs);
  const auto [at, is_new] = open->entries.try_emplace(announced.offset / block_bytes);
  Entry& entry = at->second;
  blocks_.entries += is_new ? 1 : 0;
  if (entry.has_announced && entry.announced != announced.digest)
    return fail(file, FileFailure::protocol);
  if (entry.has_announced) return;
  entry.announced = announced.digest;
  entry.has_announced = true;
  const bool is_early =
      !entry.has_own && ++blocks_.announced_early > announced_early_per_slot * options_.slots;
  if (is_early || blocks_.entries > entries_max) return fail(file, FileFailure::protocol);
  if (entry.has_own && entry.own != entry.announced)
    return fail(file, FileFailure::digest_mismatch);
  settle(file, announced.offset / block_bytes);
}

/// The sender has a block with this tag and does not send it. Where it is the tag of the block that
/// is there, the block is the sender's, and its digest is the one that was worked out here.
void Sink::on_skipped(Writing& volume, const BlockRef& block) {
  OpenFile* const open = open_announced(volume, block.file, block.offset);
  if (open == nullptr) return;
  const SinkVolume& list = *volume.list;
  const std::uint32_t entry_index = volume.entry_of(block.file);
  const std::uint64_t index = block.offset / block_bytes;
  const auto held = list.existing(entry_index).blocks.find(index);
  const bool is_same = held && held->tag == block.digest;
  const bool is_compared = list.actions()[entry_index] == list::FileAction::compare;
  if (!is_same && !is_compared)
    return fail(block.file,
                list.is_there(entry_index) ? FileFailure::differs : FileFailure::protocol);
  // Once only: of what is skipped no frame comes, and it needs no other word.
  if (!open->entries.try_emplace(index).second || ++blocks_.entries > entries_max)
    return fail(block.file, FileFailure::protocol);
  open->is_other = open->is_other || !is_same;
  Entry& entry = open->entries[index];
  if (held) entry.own = entry.announced = held->digest;
  entry.has_own = entry.has_announced = entry.is_stored = true;
  settle(block.file, index);
}

void Sink::take(const AnnouncedRoot& announced) {
  const std::uint32_t file = announced.file;
  Writing* const volume = volume_of(file);
  if (volume == nullptr) return on_unknown(file);
  if (is_stopped_) return;
  if (volume->pack && file == volume->list->pack_file())
    return on_pack_failure(volume->pack->on_root(announced.root));
  if (!is_expected(*volume, file, 0)) return fail(file, FileFailure::protocol);
  if (volume->is_done[volume->entry_of(file)]) return;
  OpenFile* const open = open_file(*volume, file);
  if (open == nullptr) return;
  if (open->has_root && open->root != announced.root) return fail(file, FileFailure::protocol);
  open->has_root = true;
  open->root = announced.root;
  finish_if_complete(file);
}

void Sink::on_checkpoint() {
  if (ends_at_checkpoint_)
    close();
  else if (!is_stopped_)
    make_durable();
  tell_held();  // whoever asks offers again what has not been told
  told_.emplace_back(CheckpointMade{});
}

/// The state of a file that is not done; nothing when it cannot be opened, which is reported.
Sink::OpenFile* Sink::open_file(Writing& volume, std::uint32_t file) {
  if (const auto at = open_.find(file); at != open_.end()) return at->second.get();
  const std::uint32_t entry = volume.entry_of(file);
  auto open = std::make_unique<OpenFile>(volume, destination_->options().digest_kind);
  if (volume.list->is_stream()) {
    if (!is_stream_open(volume)) return nullptr;
  } else if (!volume.list->is_there(entry)) {
    Result<PartFile> part = PartFile::open(*destination_, volume.list->entry(entry),
                                           {volume.list->existing(entry).left});
    if (part.has_error()) {
      refuse(*open, file, part.error().errno_value);
      if (is_stopped_) return nullptr;
      return open_.emplace(file, std::move(open)).first->second.get();
    }
    open->part = std::move(part).value();
    volume.list->count_made(entry);
    for (std::string& folder : open->part.folders_made())
      volume.folders_made.push_back(std::move(folder));
  }
  return open_.emplace(file, std::move(open)).first->second.get();
}

/// A block is in the kernel's hands. The journal may say so: the next session compares.
void Sink::on_stored(OpenFile& open, const BlockRef& block) {
  const std::uint64_t index = block.offset / block_bytes;
  Entry& entry = open.entries.at(index);
  entry.is_stored = true;
  checkpoint_.unsynced_bytes += block.length;
  SinkVolume& list = *open.volume.list;
  list.count_written(block.length);
  // Nothing of it can be resumed.
  if (list.is_stream() || open.fault != 0) return settle(block.file, index);
  const Claim stored{index, entry.own};
  const auto held = list.existing(open.volume.entry_of(block.file)).blocks.find(index);
  const bool is_recorded = held && held->digest == entry.own;
  if (!is_recorded && !open.is_sync_broken) {
    if (const int errno_value = open.part.record({&stored, 1}); errno_value != 0)
      return fail(block.file, FileFailure::write_error, errno_value);
  }
  settle(block.file, index);
}

/// One thing more is known about a block. When all is known of it and agrees, it goes to the tree.
void Sink::settle(std::uint32_t file, std::uint64_t index) {
  OpenFile& open = *open_.at(file);
  const auto at = open.entries.find(index);
  const Entry& entry = at->second;
  if (!entry.is_stored || !entry.has_announced || entry.own != entry.announced) return;
  if (open.volume.list->entry(open.volume.entry_of(file)).size > 0) open.tree.put(index, entry.own);
  open.entries.erase(at);
  --blocks_.entries;
  if (!note_settled(open, index, index + 1)) return fail(file, FileFailure::protocol);
  finish_if_complete(file);
}

/// False: they are in too many runs.
bool Sink::note_settled(OpenFile& open, std::uint64_t first, std::uint64_t end) {
  blocks_.entries -= open.settled.iterative_size();
  open.settled.add(boost::icl::interval<std::uint64_t>::right_open(first, end));
  blocks_.entries += open.settled.iterative_size();
  open.settled_total += end - first;
  blocks_.left -= end - first;
  return blocks_.entries <= entries_max;
}

void Sink::finish_if_complete(std::uint32_t file) {
  const OpenFile& open = *open_.at(file);
  const std::uint64_t size = open.volume.list->entry(open.volume.entry_of(file)).size;
  if (is_stopped_ || !open.has_root || open.settled_total < blocks_of(size)) return;
  ONEHOP_CHECK(open.entries.empty());
  if (!open.is_other && open.tree.root() != open.root)
    return fail(file, FileFailure::root_mismatch);
  finish(file);
}

void Sink::give_back(const BlockRef& block) {
  const auto ahead = std::min<std::uint64_t>(blocks_.left, disk::slots_ahead);
  pool_.make_present(block.slot + static_cast<std::size_t>(ahead));
  outbox_.push_back({.data = block.data, .file = block.file, .slot = block.slot});
}

/// The file is left out where the errno is about it alone: what comes of it is dropped.
void Sink::refuse(OpenFile& open, std::uint32_t file, int errno_value) {
  if (!disk::is_entry_fault(errno_value)) return fail(file, FileFailure::write_error, errno_value);
  open.fault = errno_value;
}

void Sink::fail(std::uint32_t file, FileFailure failure, int errno_value) {
  if (is_stopped_) return;
  is_stopped_ = true;
  told_.emplace_back(FileFailed{file, failure, errno_value});
}

}  // namespace onehop::sink
