// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sink, the disk: completions, checkpoints, and the final name. The order on the disk is always
//
//   data ─▶ journal record ─▶ fdatasync of both       while blocks arrive
//   data ─▶ fsync ─▶ rename ─▶ fsync of the folder    at the end
//
// A power cut may take a block whose record stays: the next session finds that out when it hashes
// the block again. Nobody checks a final name again, so it must be right from the start.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ranges>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/disk/confined.hpp"
#include "engine/disk/entry_fault.hpp"
#include "engine/disk/file_bytes.hpp"
#include "engine/disk/holes.hpp"
#include "engine/disk/stage.hpp"
#include "engine/sink/sink.hpp"

namespace onehop::sink {

namespace {
// Tags of writes are slots; those of syncs are files, above all slots.
constexpr std::uint64_t sync_tag = std::uint64_t{1} << 32;
}  // namespace

/// Takes finished operations. One can finish a file, which waits for others: each is taken singly.
void Sink::collect(bool is_waiting) {
  if (is_waiting) io_->wait_one();
  std::array<disk::IoCompletion, 1> done;
  while (io_->collect(done) == 1)
    if (done[0].tag >= sync_tag)
      on_synced(static_cast<std::uint32_t>(done[0].tag - sync_tag), done[0].result);
    else
      on_written(static_cast<std::uint32_t>(done[0].tag), done[0].result);
}

void Sink::wait_for_room() {
  while (io_->in_flight() >= io_->depth()) collect(true);
}

void Sink::wait_for_all() {
  submit_write();
  while (io_->in_flight() > 0) collect(true);
}

/// The disk is asked for several blocks at once where they go past the page cache.
void Sink::add_to_write(const BlockRef& block, std::uint64_t offset) {
  disk::FileOperation& write = next_.write;
  const bool is_behind = block.file == next_.file && offset == write.offset + write.bytes;
  if (next_.count > 0 && !is_behind) submit_write();
  writing_[block.slot] = {block, {}};
  if (next_.count == 0) {
    write = {.kind = disk::FileOperation::Kind::write, .offset = offset, .tag = block.slot};
    next_.file = block.file;
    write.buffer = block.data;
  } else {
    write.more[next_.count - 1] = block.data;
    writing_[next_.last_slot].next = block.slot;
  }
  write.bytes += block.length;
  next_.last_slot = block.slot;
  if (++next_.count == disk::operation_blocks_max) submit_write();
}

/// After a failure nothing more is written.
void Sink::submit_write() {
  if (std::exchange(next_.count, 0) == 0) return;
  wait_for_room();
  OpenFile& open = *open_.at(next_.file);
  next_.write.fd = open.volume.list->is_stream() ? stream_->fd() : open.part.fd();
  std::optional<std::uint32_t> first = static_cast<std::uint32_t>(next_.write.tag);
  for (; is_stopped_ && first; first = writing_[*first].next) {
    --open.writes_in_flight;
    give_back(writing_[*first].block);
  }
  if (is_stopped_) return;
  io_->submit(next_.write);
  collect(false);
}

/// Where direct I/O failed, each block is written again, through the page cache.
void Sink::on_written(std::uint32_t slot, std::int64_t result) {
  OpenFile& open = *open_.at(writing_[slot].block.file);
  if (result < 0 && open.part.give_up_direct(cache_, static_cast<int>(-result))) result = 0;
  for (std::optional<std::uint32_t> next = slot; next;) {
    const InWrite written = writing_[*next];
    next = written.next;
    on_block_written(written.block, std::min<std::int64_t>(result, written.block.length));
    if (result > 0) result -= std::min<std::int64_t>(result, written.block.length);
  }
}

void Sink::on_block_written(const BlockRef& block, std::int64_t result) {
  OpenFile& open = *open_.at(block.file);
  ONEHOP_CHECK(open.writes_in_flight > 0);
  --open.writes_in_flight;
  give_back(block);
  const bool is_piece = open.volume.list->is_stream();
  const std::span<const std::byte> bytes{block.data, block.length};
  if (result >= 0 && result < block.length) (void)open.part.give_up_direct(cache_, 0);
  int errno_value = result < 0 ? static_cast<int>(-result) : 0;
  // A short write is at the end of something; the next one tells of what.
  if (result >= 0 && std::cmp_less(result, block.length))
    errno_value = disk::write_at(
        is_piece ? stream_->fd() : open.part.fd(), bytes.subspan(static_cast<std::size_t>(result)),
        open.volume.base + block.offset + static_cast<std::uint64_t>(result));
  if (errno_value != 0 && (is_piece || disk::is_disk_fault(errno_value)))
    return fail(block.file, FileFailure::write_error, errno_value);
  if (errno_value != 0) refuse(open, block.file, errno_value);
  if (errno_value != 0 && open.fault == 0) return;
  if (is_piece || open.fault != 0) return on_stored(open, block);
  for (disk::HoleRun run = disk::next_hole(bytes, 0); run.begin < run.end;
       run = disk::next_hole(bytes, run.end))
    if (!open.part.make_hole(block.offset + run.begin, run.end - run.begin,
                             open.volume.list->entry(open.volume.entry_of(block.file)).size))
      break;
  on_stored(open, block);
}

void Sink::on_synced(std::uint32_t file, std::int64_t result) {
  OpenFile& open = *open_.at(file);
  ONEHOP_CHECK(open.is_syncing);
  open.is_syncing = false;
  const int errno_value = open.part.end_sync(result < 0 ? static_cast<int>(-result) : 0);
  if (errno_value == 0) return;
  open.is_sync_broken = true;  // nothing more may be recorded, nor the sync tried again
  fail(file, FileFailure::sync_error, errno_value);
}

void Sink::checkpoint_if_due(Instant now) {
  if (!destination_->is_synced()) return;
  if (now - checkpoint_.at < options_.checkpoint_span &&
      checkpoint_.unsynced_bytes < options_.checkpoint_bytes)
    return;
  checkpoint_.at = now;
  start_syncs();
}

/// One fdatasync per file with news, beside the writes that go on. Files of one block have none.
void Sink::start_syncs() {
  checkpoint_.unsynced_bytes = 0;
  if (const int errno_value = destination_->session().sync(); errno_value != 0)
    return fail(0, FileFailure::sync_error, errno_value);
  std::vector<std::uint32_t> files;
  for (const auto& [file, open] : open_)
    if (open->part.has_unsynced() && !open->is_syncing && !open->is_sync_broken)
      files.push_back(file);
  for (const std::uint32_t file : files) {
    wait_for_room();  // this may finish a file, and with it drop its state
    const auto at = open_.find(file);
    if (is_stopped_ || at == open_.end() || at->second->is_syncing) continue;
    OpenFile& open = *at->second;
    open.part.begin_sync();
    open.is_syncing = true;
    io_->submit(
        {.kind = disk::FileOperation::Kind::sync, .fd = open.part.fd(), .tag = sync_tag + file});
    collect(false);
  }
}

/// Everything that was stored is on the disk when this returns, unless it failed.
void Sink::make_durable() {
  wait_for_all();
  start_syncs();
  wait_for_all();
  if (!is_stopped_) (void)finish_folders();
  on_pack_failure(commit_.commit_all());
  tell_packed();
  end_volumes();
}

void Sink::finish(std::uint32_t file) {
  const auto at = open_.find(file);
  ONEHOP_CHECK(at != open_.end());
  OpenFile& open = *at->second;
  ONEHOP_CHECK(open.writes_in_flight == 0);
  while (open.is_syncing) collect(true);
  if (is_stopped_) return;
  Writing& volume = open.volume;
  SinkVolume& list = *volume.list;
  const std::uint32_t entry = volume.entry_of(file);
  FileFinished done{.file = file,
                    .root = open.root,
                    .outcome = open.is_other ? FileOutcome::kept : FileOutcome::there};
  if (list.is_stream()) {
    done.outcome = FileOutcome::received;
  } else if (list.is_there(entry)) {
    done.name_number = list.existing(entry).number;
    if (!open.is_other && list.existing(entry).other)
      if (const auto place = disk::open_place(destination_->root(), list.entry(entry).name, false))
        list.bring_over(entry, place.value().folder.get());
  } else {
    if (!finish_part(open, done)) return;
  }
  volume.is_done[entry] = true;
  blocks_.entries -= open.settled.iterative_size();
  open_.erase(at);
  tell(volume, done, 1);
}

/// False: it failed, which was told.
bool Sink::finish_part(OpenFile& open, FileFinished& done) {
  const SinkVolume& list = *open.volume.list;
  const std::uint32_t entry = open.volume.entry_of(done.file);
  FinishResult result;
  if (open.fault == 0)
    result = open.part.finish(*destination_, list.entry(entry), list.policy_of(entry));
  if (result.failure != FileFailure::none) {
    if (result.failure == FileFailure::sync_error || result.errno_value == EROFS ||
        !disk::is_entry_fault(result.errno_value)) {
      fail(done.file, result.failure, result.errno_value);
      return false;
    }
    open.fault = result.errno_value;
  }
  if (open.fault != 0) {
    if (open.part.is_open()) open.part.drop();
    done.name_fault = open.fault;
    done.outcome = FileOutcome::name_refused;
  } else {
    done.name_number = open.part.final_number();
    done.outcome = result.is_there ? FileOutcome::there : FileOutcome::received;
  }
  return true;
}

/// After a failure: what was stored before it is worth keeping, as far as the disk still takes it.
/// The failure was reported already, so errors here end only the keeping.
void Sink::keep_progress() {
  for (auto& [file, open] : open_) {
    if (!open->part.has_unsynced() || open->is_sync_broken) continue;
    open->part.begin_sync();
    static_cast<void>(open->part.end_sync(::fdatasync(open->part.fd()) == 0 ? 0 : errno));
  }
}

void Sink::close() {
  if (is_closed_) return;
  is_closed_ = true;
  if (!is_stopped_) make_durable();
  wait_for_all();
  is_stopped_ = true;
  keep_progress();
  commit_.close();
  if (stream_) {
    drop_stream();
    stream_->close();
  }
  if (!destination_->is_output()) disk::Stage::remove_left(destination_->root());
  tell_packed();
  tell_held();
  bool is_nothing_kept = done_total_ == 0;
  for (auto& [file, open] : open_) {
    const bool is_held = !open->volume.list->held_of(open->volume.entry_of(file)).empty();
    if (open->fault != 0 && open->part.is_open()) open->part.drop();
    if (!open->has_received && !is_held && open->part.is_open()) open->part.remove();
    is_nothing_kept = is_nothing_kept && !open->part.is_open();
  }
  open_.clear();
  disk::SessionJournal& session = destination_->session();
  if (is_complete() || (is_nothing_kept && !session.is_used())) session.remove();
  remove_folders_made();
}

/// Only folders that this session made, and only while they are empty: rmdir refuses the others.
void Sink::remove_folders_made() noexcept {
  for (const auto& volume : volumes_ | std::views::reverse)
    for (const std::string& path : volume->folders_made | std::views::reverse) {
      const Result<disk::Place> place = disk::open_place(destination_->root(), path, false);
      if (place.has_value())
        ::unlinkat(place.value().folder.get(), place.value().leaf.c_str(), AT_REMOVEDIR);
    }
}

}  // namespace onehop::sink
