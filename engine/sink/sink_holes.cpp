// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sink, the holes: blocks that are never sent. They are zeros in the part before the tree takes
// them for zeros, so the file is what its root says, whatever the peer announces.
//
// The journal does not list them: the next session hears of them again, for less than it takes to
// read them back.
//
// And a stream: the blocks of its pieces go to one output. A file gets its name when the last piece
// is verified.
#include <algorithm>

#include "engine/disk/entry_fault.hpp"
#include "engine/disk/zero_block.hpp"
#include "engine/sink/sink.hpp"

namespace onehop::sink {

void Sink::on_hole(Writing& volume, const BlockRef& run) {
  if (is_stopped_) return;
  const std::uint32_t entry = volume.entry_of(run.file);
  if (!is_expected(volume, run.file, run.offset)) return fail(run.file, FileFailure::protocol);
  if (volume.is_done[entry]) return;
  SinkVolume& list = *volume.list;
  const std::uint64_t size = list.entry(entry).size, first = run.offset / block_bytes,
                      end = first + blocks_of(run.length);
  const std::uint64_t left = size - run.offset;
  const bool is_whole = run.length == left || (run.length < left && run.length % block_bytes == 0);
  if (run.length == 0 || !is_whole) return fail(run.file, FileFailure::protocol);
  // Of a file that is there the sender announces what is alike by digests.
  if (list.is_there(entry)) return fail(run.file, FileFailure::differs);
  OpenFile* const open = open_file(volume, run.file);
  if (open == nullptr) return;
  if (list.is_stream()) return hold_hole(volume, run);
  // A block that came or was announced is no hole: it may be written at this moment.
  const bool is_known = std::ranges::any_of(
      open->entries, [&](const auto& block) { return block.first >= first && block.first < end; });
  if (is_known || !add_hole(*open, run)) return fail(run.file, FileFailure::protocol);
  const int errno_value = open->fault != 0 ? 0 : open->part.clear(run.offset, run.length, size);
  if (disk::is_disk_fault(errno_value))
    return fail(run.file, FileFailure::write_error, errno_value);
  if (errno_value != 0) refuse(*open, run.file, errno_value);
  if (is_stopped_) return;
  list.count_written(run.length);
  finish_if_complete(run.file);
}

/// False: it cannot be, or there are too many of them.
bool Sink::add_hole(OpenFile& open, const BlockRef& run) {
  const std::uint64_t first = run.offset / block_bytes, end = first + blocks_of(run.length);
  if (boost::icl::intersects(open.settled,
                             boost::icl::interval<std::uint64_t>::right_open(first, end)))
    return false;
  for (std::uint64_t index = first; index < end; ++index) {
    const std::uint64_t offset = run.offset + (index - first) * block_bytes;
    const std::uint64_t left = run.offset + run.length - offset;
    open.tree.put(
        index,
        disk::zero_digest(open.tree.kind(),
                          static_cast<std::uint32_t>(std::min<std::uint64_t>(left, block_bytes))));
  }
  return note_settled(open, first, end);
}

/// Where blocks are written in order the zeros are, too. A piece of a stream has no hole.
void Sink::hold_hole(const Writing& volume, const BlockRef& run) {
  if (!stream_->is_ordered() || stream_->held_total() >= entries_max)
    return fail(run.file, FileFailure::protocol);
  stream_->hold(volume.base + run.offset, run);
}

// --- a stream

bool Sink::is_stream_open(Writing& volume) {
  if (!stream_) {
    stream_.emplace(*destination_);
    const std::uint32_t file = volume.list->first_file();
    if (const int errno_value = stream_->open(file); errno_value != 0)
      fail(file, FileFailure::write_error, errno_value);
  }
  return !is_stopped_;
}

void Sink::write_stream() {
  while (!is_stopped_) {
    const auto written = stream_->write_next();
    if (!written) return;
    const BlockRef& block = written->block;
    if (block.data != nullptr) give_back(block);
    if (written->errno_value != 0)
      return fail(block.file, FileFailure::write_error, written->errno_value);
    OpenFile& open = *open_.at(block.file);
    if (block.data != nullptr) {
      on_stored(open, block);
      continue;
    }
    if (!add_hole(open, block)) return fail(block.file, FileFailure::protocol);
    finish_if_complete(block.file);
  }
  drop_stream();
}

void Sink::drop_stream() {
  while (const auto block = stream_->drop())
    if (block->data != nullptr) give_back(*block);
}

/// False: it failed, which was told.
bool Sink::finish_stream(Writing& last) {
  if (stream_->is_ordered()) return true;  // there is no name, and all is written
  const list::ManifestEntry& piece = last.list->entry(0);
  unsigned number = 0;
  const FinishResult result = stream_->finish(piece, last.list->policy_of(0), number);
  if (result.failure != FileFailure::none)
    fail(last.list->first_file(), result.failure, result.errno_value);
  else
    for (FileEvent& done : last.held) std::get<FileFinished>(done).name_number = number;
  return !is_stopped_;
}

}  // namespace onehop::sink
