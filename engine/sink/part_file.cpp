// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/sink/part_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/base/check.hpp"
#include "engine/disk/file_bytes.hpp"
#include "engine/disk/holes.hpp"
#include "engine/disk/thread/block_pool.hpp"

namespace onehop::sink {

namespace {
// A block comes late by no more than what the peer may have on its way: one pool of buffers.
constexpr std::uint64_t late_bytes_max = disk::receiver_slots * std::uint64_t{block_bytes};
}  // namespace

Fd PartFile::open_again() const {
  Fd again = disk::open_beneath(place_.folder.get(), part_name_, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  return again.is_open() && disk::is_same_inode(place_.folder.get(), part_name_, again.get()) &&
                 disk::is_same_inode(place_.folder.get(), part_name_, part_.get())
             ? std::move(again)
             : Fd{};
}

int PartFile::record(std::span<const Claim> claims) {
  if (!journal_.is_open()) return 0;  // a small file: it is complete or it is nothing
  std::vector<std::byte> bytes;
  for (const Claim& claim : claims) writer_.append(claim, bytes);
  const int errno_value = disk::write_at(journal_.get(), bytes, journal_bytes_);
  journal_bytes_ += bytes.size();
  return errno_value;
}

void PartFile::expect(disk::PageCache& cache, std::uint64_t offset, std::uint32_t bytes) noexcept {
  if (!way_) {
    way_ = cache.choose(part_.get(), header_.size);
    was_direct_ = way_->is_direct();
  }
  if (way_->spare(bytes) != 0) cache.give_up(part_.get(), *way_, 0);
  written_end_ = std::max(written_end_, offset + bytes);
}

bool PartFile::give_up_direct(disk::PageCache& cache, int errno_value) noexcept {
  if (is_direct()) cache.give_up(part_.get(), *way_, errno_value);
  return was_direct_;
}

/// Of a part that goes past the page cache: some file systems write through it all the same.
void PartFile::drop_synced() noexcept {
  if (!way_ || way_->kind == disk::CacheWay::Kind::cached) return;
  const std::uint64_t begin = dropped_end_ - std::min(dropped_end_, late_bytes_max);
  disk::drop(part_.get(), begin, syncing_end_);
  dropped_end_ = syncing_end_;
}

int PartFile::end_sync(int errno_value) noexcept {
  if (errno_value == 0) drop_synced();
  if (!journal_.is_open()) return errno_value;
  if (errno_value == 0 && ::fdatasync(journal_.get()) != 0) errno_value = errno;
  if (errno_value == 0) {
    synced_bytes_ = syncing_bytes_;
    return 0;
  }
  // The kernel may have dropped pages that it could not write; reads may still show them.
  journal_bytes_ = synced_bytes_;
  if (::ftruncate(journal_.get(), static_cast<off_t>(journal_bytes_)) != 0)
    ::unlinkat(place_.folder.get(), journal_name_.c_str(), 0);
  return errno_value;
}

/// The first one gives the part its whole size: no write that is in flight ends behind that, so
/// none is cut off.
bool PartFile::make_hole(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) noexcept {
  if (is_hole_refused_) return false;
  constexpr int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  is_hole_refused_ =
      ::fallocate(part_.get(), mode, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0 ||
      (!is_full_length_ && ::ftruncate(part_.get(), static_cast<off_t>(size)) != 0);
  is_full_length_ = !is_hole_refused_;
  return !is_hole_refused_;
}

/// Without holes the part grows run by run: FAT and exFAT write zeros up to a new length at once,
/// and those of a whole disk image would take longer than anybody waits. The zero at the end of a
/// run cuts nothing off that is written behind it meanwhile.
int PartFile::clear(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
  if (make_hole(offset, bytes, size)) return 0;
  const std::uint64_t end = offset + bytes, old_end = std::min(end, old_bytes_);
  const std::vector<std::byte> zeros(block_bytes);
  if (way_) disk::set_direct(part_.get(), false);
  int errno_value = 0;
  for (; offset < old_end && errno_value == 0; offset += zeros.size())
    errno_value = disk::write_at(
        part_.get(), std::span{zeros}.first(std::min<std::size_t>(zeros.size(), old_end - offset)),
        offset);
  if (errno_value == 0 && old_end < end)
    errno_value = disk::write_at(part_.get(), std::span{zeros}.first(1), end - 1);
  return errno_value;
}

FinishResult PartFile::finish(Destination& destination, const list::ManifestEntry& entry,
                              OnExist on_exist) {
  ONEHOP_CHECK(is_open());
  const bool is_synced = destination.is_synced();
  // From here on a crash may leave a part with another mode, or a final name that no session knows.
  if (journal_.is_open()) {
    const int errno_value = destination.session().add(list::entry_hash(entry), part_.get());
    if (errno_value != 0) return {FileFailure::write_error, errno_value};
  }
  if (is_synced && needs_record(on_exist))
    if (const int errno_value = destination.session().sync(); errno_value != 0)
      return {FileFailure::sync_error, errno_value};
  // Mode and time first, so that the one fsync covers them too.
  if (disk::set_mode(part_.get(), entry.mode & 0777 & ~destination.umask_bits()) != 0)
    return {FileFailure::write_error, errno};
  if (disk::set_mtime(part_.get(), entry.mtime_ns) != 0) return {FileFailure::write_error, errno};
  syncing_end_ = written_end_;
  if (is_synced && ::fsync(part_.get()) != 0) return {FileFailure::sync_error, errno};
  if (is_synced) drop_synced();
  // Somebody with access to the folder may have put another file under our temporary name.
  const int folder = place_.folder.get();
  if (!disk::is_same_inode(folder, part_name_, part_.get()))
    return {FileFailure::rename_error, ESTALE};
  const int errno_value = destination.opened_folders().use_in(disk::parent_of(entry.name), [&] {
    return give_name(folder, part_name_, folder, place_.leaf, on_exist, final_number_);
  });
  if (errno_value == EEXIST && is_same_content(folder, part_name_, folder, place_.leaf)) {
    final_number_ = 0;
    drop();
    return {.is_there = true};
  }
  if (errno_value != 0)
    return {errno_value == EEXIST ? FileFailure::exists : FileFailure::rename_error, errno_value};
  const std::string leaf =
      final_number_ == 0 ? place_.leaf : list::numbered_leaf(place_.leaf, final_number_);
  if (!disk::is_same_inode(folder, leaf, part_.get())) return {FileFailure::rename_error, ESTALE};
  if (is_synced && disk::sync_folder(folder) != 0) return {FileFailure::sync_error, errno};
  disk::unlink_same(folder, journal_name_, journal_.get());  // discard() finds one left here
  return {};
}

int give_name(int from_folder, const std::string& from, int folder, const std::string& leaf,
              OnExist on_exist, unsigned& number) {
  number = 0;
  if (on_exist == OnExist::overwrite) {
    struct stat status {
    }, own{};
    const bool is_there = ::fstatat(folder, leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (::fstatat(from_folder, from.c_str(), &own, AT_SYMLINK_NOFOLLOW) != 0) return errno;
    const bool is_emptied = is_there && S_ISDIR(status.st_mode) && S_ISREG(own.st_mode);
    if (is_emptied && ::unlinkat(folder, leaf.c_str(), AT_REMOVEDIR) != 0)
      return errno == ENOTEMPTY ? EISDIR : errno;
    if (is_there && !is_emptied && (status.st_mode & S_IFMT) != (own.st_mode & S_IFMT))
      return EEXIST;
    return ::renameat(from_folder, from.c_str(), folder, leaf.c_str()) == 0 ? 0 : errno;
  }
  int errno_value = disk::rename_new(from_folder, from, folder, leaf);
  const unsigned last = on_exist == OnExist::rename ? list::name_number_max : 0;
  for (unsigned next = 2; errno_value == EEXIST && next <= last; ++next) {
    number = next;
    errno_value = disk::rename_new(from_folder, from, folder, list::numbered_leaf(leaf, number));
  }
  return errno_value;
}

bool is_same_content(int from_folder, const std::string& from, int folder,
                     const std::string& leaf) {
  const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
  const Fd ours = disk::open_beneath(from_folder, from, flags),
           there = disk::open_beneath(folder, leaf, flags);
  std::vector<std::byte> one(block_bytes), other(block_bytes);
  if (!ours.is_open() || !there.is_open()) {
    const auto target_of = [](int in, const std::string& name, std::vector<std::byte>& target) {
      const ssize_t bytes =
          ::readlinkat(in, name.c_str(), reinterpret_cast<char*>(target.data()), target.size());
      target.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    };
    target_of(from_folder, from, one);
    target_of(folder, leaf, other);
    return !one.empty() && one == other;
  }
  struct stat ours_status {
  }, there_status{};
  if (::fstat(ours.get(), &ours_status) != 0 || ::fstat(there.get(), &there_status) != 0 ||
      !S_ISREG(there_status.st_mode) || ours_status.st_size != there_status.st_size)
    return false;
  std::int64_t read = 0;
  for (std::uint64_t at = 0;; at += static_cast<std::uint64_t>(read)) {
    read = disk::read_at(ours.get(), one, at);
    if (read < 0 || disk::read_at(there.get(), other, at) != read) return false;
    const auto bytes = static_cast<std::size_t>(read);
    if (std::memcmp(one.data(), other.data(), bytes) != 0) return false;
    if (bytes < one.size()) return true;
  }
}

void PartFile::remove() noexcept {
  const int folder = place_.folder.get();
  if (is_part_made_ && disk::is_same_inode(folder, part_name_, part_.get())) {
    ::unlinkat(folder, part_name_.c_str(), 0);
    disk::unlink_same(folder, journal_name_, journal_.get());
  }
  part_.close();
  journal_.close();
}

}  // namespace onehop::sink
