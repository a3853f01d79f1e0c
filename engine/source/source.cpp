// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/source/source.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/disk/zero_block.hpp"

namespace onehop::source {

namespace {
// With more messages waiting the Source reads no further: empty files would fill the outbox.
constexpr std::size_t outbox_max = 64;

bool has_data(const BlockRef& message) noexcept { return message.data != nullptr; }
}  // namespace

Source::Source(const SourceOptions& options, std::unique_ptr<disk::FileIo> io)
    : options_{options},
      io_{std::move(io)},
      pool_{options_.slots},
      cache_{options_.direct_io},
      mac_{options_.compare_key},
      pack_shared_{.pool = pool_, .outbox = outbox_, .kind = options_.digest_kind, .mac = mac_} {
  ONEHOP_CHECK(io_ != nullptr);
}

void Source::add(SourceVolume volume) {
  ONEHOP_CHECK(volume.entries() == volume.files->manifest.files.size());
  ONEHOP_CHECK(volume.answer->actions.empty() || volume.answer->actions.size() == volume.entries());
  const std::lock_guard lock{mutex_};
  added_.push_back(std::move(volume));
}

std::size_t Source::turn(Instant, FileRings& rings) {
  std::size_t moved = 0;
  for (BlockRef block; rings.from_engine.pop(block); ++moved) pool_.give_back(block.slot);
  for (FileCommand command; rings.commands.pop(command); ++moved) take(command);
  moved += flush(rings);
  const std::size_t waiting = data_waiting(rings.to_engine);
  const std::size_t submitted = submit_reads(waiting);
  if (submitted > 0) read_ahead_.on_fill(waiting);
  moved += submitted;
  collect_reads();
  moved += hand_over();
  drop_volumes();
  return moved + flush(rings);
}

std::size_t Source::flush(FileRings& rings) {
  std::size_t count = 0;
  for (; !outbox_.empty() && rings.to_engine.push(outbox_.front()); ++count) {
    in_ring_.push_back(has_data(outbox_.front()));
    outbox_.pop_front();
  }
  for (; !told_.empty() && rings.events.push(told_.front()); ++count) told_.pop_front();
  return count;
}

/// Blocks with data that the engine has not taken. One that is skipped keeps no block ready: small
/// files that are only compared go as fast as they are read.
std::size_t Source::data_waiting(const SpscRing<BlockRef>& to_engine) {
  while (in_ring_.size() > to_engine.size()) in_ring_.pop_front();
  return static_cast<std::size_t>(std::ranges::count(in_ring_, true));
}

bool Source::take_volume() {
  const std::lock_guard lock{mutex_};
  if (added_.empty()) return false;
  ONEHOP_CHECK(!has_last_);
  has_last_ = added_.front().is_last;
  volumes_.push_back(std::make_unique<Reading>(std::move(added_.front()), pack_shared_));
  added_.pop_front();
  return true;
}

/// Moves to the next piece, of the next volume if need be. False: there is none now.
bool Source::find_next_piece() {
  while (!next_.piece) {
    if (!volumes_.empty()) next_.piece = volumes_.back()->order.next();
    if (next_.piece) return true;
    if (!volumes_.empty()) volumes_.back()->is_read = true;
    if (!take_volume()) return false;
  }
  return true;
}

/// Reads the next entry into its pack; `count` gets the blocks that became full. False: there is no
/// room now, or it failed.
bool Source::pack_next(std::size_t& count) {
  Reading& volume = *volumes_.back();
  if (!volume.pack.has_room()) return false;
  const std::size_t unsent = outbox_.size();
  if (const auto [failure, errno_value] = volume.pack.add(); failure != FileFailure::none) {
    fail(next_file(), failure, errno_value);
    return false;
  }
  next_.piece.reset();
  count += outbox_.size() - unsent;
  if (volume.pack.is_over())
    told_.emplace_back(RootRead{
        list::pack_file(volume.list.files->manifest, volume.list.first_file), volume.pack.root()});
  return true;
}

/// Opens the file of the next entry. False: it failed.
bool Source::open_next_file() {
  list::SourceFiles& files = *volumes_.back()->list.files;
  list::SourceFile& file = files.files[next_.piece->entry];
  if (!file.fd.is_open()) {
    struct stat status {};
    Result<Fd> again = pack_shared_.opener.look_at_file(files, next_.piece->entry, status);
    if (again.has_error()) {
      const int errno_value = again.error().errno_value;
      fail(next_file(), list::failure_of(errno_value), errno_value);
      return false;
    }
    file.fd = std::move(again).value();
  }
  if (!check_fence(next_file())) return false;
  // Doubles the kernel's read-ahead. A hint: it may fail.
  ::posix_fadvise(file.fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  next_.extents = disk::Extents{file.fd.get(), size_of(next_file())};
  if (std::exchange(next_.chosen, next_file()) != next_file())
    next_.way = cache_.choose(file.fd.get(), size_of(next_file()));
  next_.block = next_.piece->run.first;
  next_.is_open = true;
  return true;
}

std::size_t Source::submit_reads(std::size_t waiting) {
  std::size_t count = 0;
  const auto has_room = [&] {
    const auto unsent = static_cast<std::size_t>(std::ranges::count_if(outbox_, has_data));
    return outbox_.size() + told_.size() < outbox_max &&
           waiting + unsent + reads_.size() < read_ahead_.blocks();
  };
  while (!is_over_ && io_->in_flight() < io_->depth() && has_room()) {
    if (!find_next_piece()) {
      is_waiting_ = !has_last_;
      end_if_last();
      return count;
    }
    is_waiting_ = false;
    if (volumes_.back()->pack.is_next(next_.piece->entry)) {
      if (!pack_next(count)) return count;
      continue;
    }
    if (!next_.is_open && !open_next_file()) return count;
    is_waiting_ = next_.piece->is_held && !is_tag_known(next_.block);
    if (is_waiting_) return count;
    if (submit_hole()) {
      ++count;
      continue;
    }
    const std::size_t blocks = submit_read();
    if (blocks == 0) return count;
    count += blocks;
    collect_reads();
    if (io_->depth() == 1) count += hand_over();  // hash it while it is in the cache
  }
  return count;
}

/// Takes what lies in a hole from the next block on; it is handed over in its turn. False: that
/// block has data.
bool Source::submit_hole() {
  const std::uint64_t left = next_.piece->is_held ? 1 : next_.piece->run.end - next_.block;
  const std::uint64_t blocks = std::min(next_.extents.hole_blocks(next_.block), left);
  if (blocks == 0) return false;
  const std::uint32_t file = next_file();
  const std::uint64_t offset = next_.block * block_bytes;
  const std::uint64_t bytes = std::min(blocks * block_bytes, size_of(file) - offset);
  reads_.push_back({.block = {.offset = offset,
                              .file = file,
                              .length = static_cast<std::uint32_t>(bytes),
                              .kind = BlockKind::hole},
                    .tag = take_tag(next_.block),
                    .is_done = true});
  pass_blocks(blocks);
  return true;
}

void Source::pass_blocks(std::uint64_t count) {
  next_.block += count;
  if (next_.block < next_.piece->run.end) return;
  next_.is_open = false;
  next_.piece.reset();
}

/// Everything that was added is read.
void Source::end_if_last() {
  if (!has_last_ || !reads_.empty()) return;
  outbox_.push_back({.kind = BlockKind::end_of_files});
  is_over_ = true;
}

/// A volume whose reads have all been handed over goes, with its names and descriptors.
void Source::drop_volumes() {
  while (!volumes_.empty()) {
    const SourceVolume& oldest = volumes_.front()->list;
    if (!volumes_.front()->is_read) return;
    if (!reads_.empty() && oldest.contains(reads_.front().block.file)) return;
    std::erase_if(tags_, [&](const auto& tags) { return oldest.contains(tags.first); });
    volumes_.pop_front();
  }
}

SourceVolume& Source::volume_of(std::uint32_t file) const {
  const auto at = std::ranges::find_if(
      volumes_, [&](const auto& volume) { return volume->list.contains(file); });
  ONEHOP_CHECK(at != volumes_.end());
  return (*at)->list;
}

list::SourceFile& Source::source_file(std::uint32_t file) const {
  SourceVolume& list = volume_of(file);
  return list.files->files[file - list.first_file];
}

std::uint64_t Source::size_of(std::uint32_t file) const {
  const SourceVolume& list = volume_of(file);
  return list.files->manifest.files[file - list.first_file].size;
}

std::uint32_t Source::next_file() const {
  return volumes_.back()->list.first_file + static_cast<std::uint32_t>(next_.piece->entry);
}

std::size_t Source::hand_over() {
  std::size_t count = 0;
  while (!reads_.empty() && reads_.front().is_done) {
    const Read read = reads_.front();
    reads_.pop_front();
    ++first_tag_;
    ++count;
    const bool is_hole = read.block.kind == BlockKind::hole;
    if (is_over_ && !is_hole) pool_.give_back(read.block.slot);
    if (is_over_) continue;
    if (is_hole)
      finish_hole(read);
    else
      finish_block(read);
  }
  return count;
}

void Source::finish_block(Read read) {
  BlockRef block = read.block;
  const std::uint64_t size = size_of(block.file);
  if (const std::int64_t result = bytes_read(read); result != block.length) {
    pool_.give_back(block.slot);
    const int errno_value = result < 0 ? static_cast<int>(-result) : 0;
    if (errno_value != 0) return fail(block.file, list::failure_of(errno_value), errno_value);
    if (check_fence(block.file)) fail(block.file, FileFailure::source_length, 0);
    return;
  }
  block.digest = crypto::block_digest(options_.digest_kind, {block.data, block.length});
  Begun& file = begun(block.file);
  if (size > 0) file.tree.put(block.offset / block_bytes, block.digest);

  const bool is_last = --file.left == 0;
  // The fence comes before the last block: a changed file then never completes at the peer.
  if (is_last && (!check_fence(block.file) || !has_file_ended(block.file)))
    return pool_.give_back(block.slot);
  if (const auto tag = tag_if_held(block, read.tag)) {
    pool_.give_back(block.slot);
    block.kind = BlockKind::skipped;
    block.data = nullptr;
    block.digest = *tag;
  }
  outbox_.push_back(block);
  if (is_last) end_file(block.file);
}

/// Blocks of zeros that the peer holds are announced as any block that it holds, the rest as holes.
void Source::finish_hole(const Read& read) {
  const BlockRef& run = read.block;
  const std::uint64_t end = run.offset + run.length, size = size_of(run.file);
  Begun& file = begun(run.file);
  const bool is_last = (file.left -= blocks_of(run.length)) == 0;
  if (is_last && (!check_fence(run.file) || !has_file_ended(run.file))) return;
  BlockRef hole = run;
  const auto hand_over_until = [&](std::uint64_t offset) {
    hole.length = static_cast<std::uint32_t>(offset - hole.offset);
    if (hole.length > 0) outbox_.push_back(hole);
  };
  for (std::uint64_t offset = run.offset; offset < end; offset += block_bytes) {
    BlockRef block{.offset = offset,
                   .file = run.file,
                   .length = block_length_at(size, offset),
                   .kind = BlockKind::skipped};
    file.tree.put(offset / block_bytes, disk::zero_digest(options_.digest_kind, block.length));
    const auto tag = tag_if_held(block, read.tag);
    if (!tag) continue;
    block.digest = *tag;
    hand_over_until(offset);
    outbox_.push_back(block);
    hole.offset = offset + block.length;
  }
  hand_over_until(end);
  if (is_last) end_file(run.file);
}

void Source::end_file(std::uint32_t file) {
  told_.emplace_back(RootRead{file, begun_.at(file).tree.root()});
  begun_.erase(file);
  source_file(file).fd.close();
}

Source::Begun& Source::begun(std::uint32_t file) {
  return begun_
      .try_emplace(file, Begun{.tree = crypto::DigestTree{options_.digest_kind},
                               .left = blocks_of(size_of(file))})
      .first->second;
}

bool Source::check_fence(std::uint32_t file) {
  const list::SourceFile& source = source_file(file);
  struct stat status {};
  if (::fstat(source.fd.get(), &status) != 0) {
    fail(file, list::failure_of(errno), errno);
    return false;
  }
  if (list::is_within(source.fence, status)) return true;
  fail(file, status.st_nlink == 0 ? FileFailure::source_vanished : FileFailure::source_changed, 0);
  return false;
}

/// Files that the kernel makes up as they are read report a size of 0, or of a page.
bool Source::has_file_ended(std::uint32_t file) {
  if (size_of(file) >= disk::direct_bytes_min) disk::set_direct(source_file(file).fd.get(), false);
  if (!list::has_content_at(source_file(file).fd.get(), size_of(file))) return true;
  fail(file, FileFailure::source_length, 0);
  return false;
}

void Source::fail(std::uint32_t file, FileFailure failure, int errno_value) {
  if (is_over_) return;
  told_.emplace_back(FileFailed{file, failure, errno_value});
  is_over_ = true;
}

}  // namespace onehop::source
