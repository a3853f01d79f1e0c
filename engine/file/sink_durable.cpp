// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sink, the disk: completions, checkpoints, and the final name. The order on the disk is always
//   data ─▶ fdatasync ─▶ journal record          and at the end          data ─▶ fsync ─▶ rename ─▶ fsync of the folder
// so a record never speaks of a block that a power cut could still take, and no more does a name.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "engine/base/check.hpp"
#include "engine/file/sink.hpp"

namespace onehop::file {

namespace {
// Tags of writes are slots; those of syncs are files, above all slots.
constexpr std::uint64_t sync_tag = std::uint64_t{1} << 32;
}  // namespace

Sink::~Sink() {
  // The kernel may still read from the pool's memory: it must not be unmapped before.
  is_stopped_ = true;
  std::array<IoCompletion, io_depth_max> done;
  while (io_->in_flight() > 0) {
    io_->wait_one();
    static_cast<void>(io_->collect(done));
  }
}

/// Takes finished operations. A completion can finish a file, which itself waits for others, so each is taken singly.
void Sink::collect(bool is_waiting) {
  if (is_waiting) io_->wait_one();
  std::array<IoCompletion, 1> done;
  while (io_->collect(done) == 1) {
    if (done[0].tag >= sync_tag) {
      on_synced(static_cast<std::uint32_t>(done[0].tag - sync_tag), done[0].result);
    } else {
      on_written(static_cast<std::uint32_t>(done[0].tag), done[0].result);
    }
  }
}

void Sink::wait_for_room() {
  while (io_->in_flight() >= io_->depth()) collect(true);
}

void Sink::wait_for_all() {
  while (io_->in_flight() > 0) collect(true);
}

void Sink::on_written(std::uint32_t slot, std::int64_t result) {
  const BlockRef block = writing_[slot];
  OpenFile& open = *open_.at(block.file);
  ONEHOP_CHECK(open.writes_in_flight > 0);
  --open.writes_in_flight;
  give_back(block);
  if (result != static_cast<std::int64_t>(block.length))
    return fail(block.file, FileFailure::write_error, result < 0 ? static_cast<int>(-result) : ENOSPC);
  ++totals_.blocks_written;
  totals_.bytes_written += block.length;
  const std::uint64_t index = block.offset / block_bytes;
  open.entries.at(index).is_stored = true;
  settle(block.file, index);
}

void Sink::on_synced(std::uint32_t file, std::int64_t result) {
  OpenFile& open = *open_.at(file);
  ONEHOP_CHECK(open.is_syncing);
  open.is_syncing = false;
  // After a failed sync the kernel may have dropped the pages: nothing of this round may be recorded, nor tried again.
  if (result < 0) {
    open.is_sync_broken = true;
    return fail(file, FileFailure::sync_error, static_cast<int>(-result));
  }
  const int errno_value = open.part.record(open.in_sync);
  open.in_sync.clear();
  if (errno_value != 0) fail(file, FileFailure::write_error, errno_value);
}

void Sink::checkpoint_if_due(Instant now) {
  if (now - checkpoint_at_ < options_.checkpoint_span) return;
  checkpoint_at_ = now;
  start_syncs();
}

/// One fdatasync per file with news, beside the writes that go on. Files of one block have no journal to feed.
void Sink::start_syncs() {
  std::vector<std::uint32_t> files;
  for (const auto& [file, open] : open_)
    if (!open->to_record.empty() && !open->is_syncing && blocks_of(manifest_.files[file].size) > 1)
      files.push_back(file);
  for (const std::uint32_t file : files) {
    wait_for_room();  // this may finish a file, and with it drop its state
    const auto at = open_.find(file);
    if (is_stopped_ || at == open_.end() || at->second->is_syncing) continue;
    OpenFile& open = *at->second;
    open.in_sync = std::exchange(open.to_record, {});
    open.is_syncing = true;
    io_->submit_sync(open.part.fd(), sync_tag + file);
    ++totals_.checkpoints;
    collect(false);
  }
}

/// Everything that matched is on the disk and in the journals when this returns, unless it failed.
void Sink::make_durable() {
  wait_for_all();
  start_syncs();
  wait_for_all();
  for (const auto& [file, open] : open_)
    if (const int errno_value = open->part.sync_journal(); errno_value != 0)
      return fail(file, FileFailure::sync_error, errno_value);
}

void Sink::finish(std::uint32_t file) {
  const auto at = open_.find(file);
  ONEHOP_CHECK(at != open_.end());
  OpenFile& open = *at->second;
  ONEHOP_CHECK(open.writes_in_flight == 0);
  while (open.is_syncing) collect(true);
  if (is_stopped_) return;
  BlockRef done{.file = file, .kind = BlockKind::file_done, .outcome = open.is_other ? FileOutcome::kept : FileOutcome::there,
                .digest = open.root};
  if (!open.complete.is_open()) {
    const FinishResult result = open.part.finish(manifest_.files[file], part_options(file));
    if (result.failure != FileFailure::none) return fail(file, result.failure, result.errno_value);
    done.status = static_cast<std::int32_t>(open.part.final_number());
    done.outcome = FileOutcome::received;
  }
  outbox_.push_back(done);
  is_done_[file] = true;
  --files_left_;
  ++totals_.files_done;
  open_.erase(at);
}

/// After a failure: what matched before it is worth keeping, as far as the disk still takes it. The failure was
/// reported already, so errors here end only the keeping.
void Sink::keep_progress() {
  for (auto& [file, open] : open_) {
    if (open->to_record.empty() || open->is_sync_broken || ::fdatasync(open->part.fd()) != 0) continue;
    if (open->part.record(open->to_record) == 0) static_cast<void>(open->part.sync_journal());
    open->to_record.clear();
  }
}

void Sink::close() {
  if (is_closed_) return;
  is_closed_ = true;
  if (!is_stopped_) make_durable();
  wait_for_all();
  is_stopped_ = true;
  keep_progress();
  for (auto& [file, open] : open_)
    if (!open->has_received && claims_[file].empty() && open->part.is_open()) open->part.remove();
  open_.clear();
  remove_folders_made();
}

/// Only folders that this session made, and only while they are empty: rmdir refuses the others.
void Sink::remove_folders_made() noexcept {
  for (auto path = folders_made_.rbegin(); path != folders_made_.rend(); ++path) {
    const Result<Place> place = open_place(root_.get(), *path, false);
    if (place.has_value()) ::unlinkat(place.value().folder.get(), place.value().leaf.c_str(), AT_REMOVEDIR);
  }
}

}  // namespace onehop::file
