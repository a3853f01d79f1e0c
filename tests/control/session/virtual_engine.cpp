// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// VirtualEnd, its engine and file thread.
#include <algorithm>

#include "tests/control/session/virtual_session.hpp"

namespace onehop::session::test {

// --- the engine

void VirtualEnd::obey(Instant now, const Command& command) {
  if (!has_engine_) return fault("a command, and no engine");
  if (is_finished_) return fault("a command after finish");
  switch (command.kind) {
    case CommandKind::prove_path:
      if (!is_mute) say(later(now), EventKind::path_proven);
      break;
    case CommandKind::start:
      if (!is_proven_ || is_started_) fault("started before the path was proven, or twice");
      is_started_ = true;
      if (sender_ != nullptr && !is_mute)
        for (const Held& held : held_) send_volume(now, held);
      break;
    case CommandKind::checkpoint:
      events_.clear();
      if (receiver_ != nullptr) say(later(now), CheckpointMade{});
      break;
    case CommandKind::finish:
      is_finished_ = true;
      events_.clear();
      say(later(now), EventKind::closed);
      break;
    case CommandKind::skip_block: take_skipped(command.block); break;
    case CommandKind::path_update:
    case CommandKind::add_files: break;
  }
}

/// The blocks of the pack, and the root over it.
void VirtualEnd::send_pack(const Held& held) {
  BlockRef block{.file = held.pack_file()};
  for (std::uint64_t i = 0; i < blocks_of(held.pack.bytes()); ++i) {
    sent_at_ = later(sent_at_);
    block.offset = i * block_bytes;
    block.length = static_cast<std::uint32_t>(block_length_at(held.pack.bytes(), block.offset));
    say(sent_at_, Event{.kind = EventKind::block_sent, .block = block});
  }
  say(sent_at_, RootRead{.file = block.file});
}

/// The records come to their names in runs, in no order. Only what was compared may be kept.
void VirtualEnd::take_pack(Instant now, const Held& held) {
  const auto is_compared = [&held](std::uint32_t ordinal) {
    return held.actions[held.pack.entries()[ordinal]] == FileAction::compare;
  };
  const auto count = static_cast<std::uint32_t>(held.pack.entries().size());
  for (std::uint32_t first = 0; first < count;) {
    const bool may_be_kept = is_compared(first);
    const std::uint64_t most = 1 + draw(std::max<std::uint64_t>(20, count));
    std::uint32_t length = 1;
    while (length < most && first + length < count && is_compared(first + length) == may_be_kept)
      ++length;
    RecordsFinished run{.pack = held.pack_file(), .first = first, .count = length};
    if (may_be_kept && draw(2) == 0) run.outcome = FileOutcome::kept;
    say(later(now), run);
    first += length;
  }
}

void VirtualEnd::send_volume(Instant now, const Held& held) {
  sent_at_ = std::max(sent_at_, now);
  for (std::uint32_t entry = 0; entry < held.actions.size() && !has_failed_; ++entry)
    if (has_digests(held.actions[entry]) && !held.untold.contains(entry)) send_entry(held, entry);
  if (has_failed_) return;
  if (!held.pack.is_empty()) send_pack(held);
  if (held.is_last && held.untold.empty()) say(later(sent_at_), EventKind::all_arrived);
}

void VirtualEnd::send_entry(const Held& held, std::uint32_t entry) {
  BlockRef block{.file = held.first_file + entry};
  if (changes_left > 0 && draw(3) == 0) {
    --changes_left;
    has_failed_ = true;
    const auto failure = draw(4) == 0 ? FileFailure::read_error : FileFailure::source_changed;
    return say(later(sent_at_), FileFailed{block.file, failure});
  }
  if (held.pack.contains(entry)) return;
  const std::uint64_t size = held.manifest->files[entry].size;
  block.digest = some_root(held.manifest->files[entry]);
  for (std::uint64_t i = 0; i < blocks_of(size); ++i) {
    sent_at_ = later(sent_at_);
    block.offset = i * block_bytes;
    block.length = block_length_at(size, i * block_bytes);
    const bool is_claimed =
        held.actions[entry] == FileAction::compare || held.told.contains({entry, i});
    if (!is_claimed && size > 0 && draw(6) == 0) {  // a hole, of one block or more
      std::uint64_t most = blocks_of(size) - i;
      for (const auto& [of, told] : held.told)
        if (of == entry && told > i) most = std::min(most, told - i);
      block.length = static_cast<std::uint32_t>(
          std::min(size - block.offset, (1 + draw(most)) * std::uint64_t{block_bytes}));
      block.kind = BlockKind::hole;
      i += blocks_of(block.length) - 1;
    } else {
      block.kind = is_claimed ? BlockKind::skipped : BlockKind::block;
    }
    const bool is_sent = block.kind == BlockKind::block;
    say(sent_at_,
        Event{.kind = is_sent ? EventKind::block_sent : EventKind::block_skipped, .block = block});
  }
  say(sent_at_, RootRead{block.file, block.digest});
}

// As a file thread: a file is done when its root and a digest of each block came.
void VirtualEnd::take_file_command(Instant now, const FileCommand& command) {
  if (const auto* digest = std::get_if<AnnouncedDigest>(&command))
    take_digests(digest->file, digest->offset, 1);
  if (const auto* root = std::get_if<AnnouncedRoot>(&command)) take_root(now, *root);
  if (const auto* told = std::get_if<HeldBlock>(&command)) take_held(now, *told);
  if (const auto* end = std::get_if<HeldEnd>(&command)) take_held(now, *end);
}

/// A skipped block, or the blocks of a hole.
void VirtualEnd::take_skipped(const BlockRef& block) {
  const bool is_hole = block.kind == BlockKind::hole;
  if (is_hole && block.length == 0) fault("a hole without a byte");
  take_digests(block.file, block.offset, is_hole ? blocks_of(block.length) : 1);
}

void VirtualEnd::take_digests(std::uint32_t file, std::uint64_t offset, std::uint64_t blocks) {
  const Held* const held = find(file);
  if (held == nullptr || entry_of(file) == nullptr ||
      held->pack.contains(file - held->first_file) ||
      offset / block_bytes + blocks > blocks_of(entry_of(file)->size))
    return fault("a digest of a block that no file has, or of a packed one");
  digests_[file] += blocks;
}

void VirtualEnd::take_root(Instant now, const AnnouncedRoot& said_root) {
  const std::uint32_t file = said_root.file;
  const Held* const held = find(file);
  if (held == nullptr) return fault("a root for no file");
  if (file == held->pack_file()) {
    if (held->pack.is_empty()) fault("a root for no pack");
    return is_mute ? void() : take_pack(now, *held);
  }
  const std::uint32_t place = file - held->first_file;
  if (held->pack.contains(place)) fault("a message for a packed file by itself");
  if (is_mute || digests_[file] < blocks_of(held->manifest->files[place].size)) return;
  digests_.erase(file);
  if (fails && draw(3) == 0) return say(later(now), FileFailed{file, FileFailure::write_error});
  FileFinished done{.file = file, .root = said_root.root};
  if (held->actions[place] == FileAction::compare)
    done.outcome = draw(2) == 0 ? FileOutcome::kept : FileOutcome::there;
  say(later(now), done);
}

/// Most of what seemed to be there is.
void VirtualEnd::tell_held(Instant now, const Held& held) {
  if (receiver_ == nullptr || is_mute) return;
  for (std::uint32_t entry = 0; entry < held.blocks.size(); ++entry) {
    const std::uint32_t file = held.first_file + entry;
    for (const BlockRun& run : held.blocks[entry])
      for (std::uint64_t block = run.first; block < run.end; ++block)
        if (draw(6) != 0)
          say(now = later(now), HeldBlock{file, block, some_root(held.manifest->files[entry])});
    if (!held.blocks[entry].empty()) say(now = later(now), HeldEnd{file});
  }
}

void VirtualEnd::take_held(Instant, const HeldBlock& told) {
  Held* const held = find(told.file);
  if (held == nullptr || !held->untold.contains(told.file - held->first_file) ||
      !held->told.emplace(told.file - held->first_file, told.block).second)
    fault("a block of a file of which nothing is held, or twice");
}

void VirtualEnd::take_held(Instant now, const HeldEnd& end) {
  Held* const held = find(end.file);
  if (held == nullptr || held->untold.erase(end.file - held->first_file) == 0)
    return fault("the end of what is not held");
  if (is_mute || has_failed_) return;
  sent_at_ = std::max(sent_at_, now);
  send_entry(*held, end.file - held->first_file);
  if (!has_failed_ && held->is_last && held->untold.empty())
    say(later(sent_at_), EventKind::all_arrived);
}

}  // namespace onehop::session::test
