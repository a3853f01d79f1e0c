// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SinkVolume, the comparison: what is there already, block by block.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "engine/base/display_name.hpp"
#include "engine/disk/confined.hpp"
#include "engine/disk/file_bytes.hpp"
#include "engine/sink/sink_volume.hpp"

namespace onehop::sink {

namespace {

/// Each block that is compared takes 112 bytes, whether the disk has it or not: 470 MB for a
/// tebibyte of holes. Less: such files have to be sent again. More: a size alone takes more memory.
constexpr std::uint64_t hole_blocks_compared_max = std::uint64_t{1} << 22;

}  // namespace

/// The file is there, perhaps this very one. All of it is offered, nothing written. The Sink reads
/// it, but for what is decided before.
Result<void> SinkVolume::compare(std::uint32_t entry, int folder, const std::string& leaf) {
  const list::ManifestEntry& file = manifest().files[entry];
  if (file.is_symlink()) return compare_symlink(entry, folder, leaf);
  const Fd there = disk::open_beneath(folder, leaf, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!there.is_open())
    return errno_error(ExitCode::local_file_error, "compare '" + display_name(file.name) + "'");
  struct stat status {};
  if (::fstat(there.get(), &status) != 0 ||
      blocks_of(file.size) > disk::disk_bytes(status) / block_bytes + hole_blocks_compared_max)
    return Error{ExitCode::local_file_error, "compare '" + display_name(file.name) + "'",
                 "more than a tebibyte of it is holes",
                 "Choose --on-exist skip, rename or overwrite", EEXIST};
  note_other(entry, status);
  if (has_part(entry) && policy_of(entry) != OnExist::skip) {
    existing_[entry].held = {{0, blocks_of(file.size)}};
    existing_[entry].is_expected = true;
  } else {
    expect(entry, reader_->read(there.get(), file.size));
  }
  return success();
}

Result<void> SinkVolume::compare_symlink(std::uint32_t entry, int folder, const std::string& leaf) {
  const list::ManifestEntry& link = manifest().files[entry];
  const std::span<std::byte> buffer = reader_->buffer();
  char* const target = reinterpret_cast<char*>(buffer.data());
  const ssize_t bytes = ::readlinkat(folder, leaf.c_str(), target, buffer.size());
  if (bytes < 0)
    return errno_error(ExitCode::local_file_error, "compare '" + display_name(link.name) + "'");
  if (struct stat status{}; ::fstatat(folder, leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
    note_other(entry, status);
  HeldBlocks found;
  found.add(0, reader_->hash(buffer.first(static_cast<std::size_t>(bytes))));
  expect(entry, std::move(found));
  return success();
}

void SinkVolume::note_other(std::uint32_t entry, const struct stat& status) {
  const list::ManifestEntry& file = manifest().files[entry];
  const timespec offered = disk::time_of(file.mtime_ns);
  const bool is_same_mode = file.is_symlink() || (status.st_mode & 0777) == mode_of(entry);
  if (!is_same_mode || status.st_mtim.tv_sec != offered.tv_sec ||
      status.st_mtim.tv_nsec != offered.tv_nsec)
    existing_[entry].other = status.st_ino;
}

/// What keeps no mode or time, or is another user's, stays as it is.
void SinkVolume::bring_over(std::uint32_t entry, int folder) const {
  const Existing& there_before = existing(entry);
  if (!there_before.other) return;
  const list::ManifestEntry& file = manifest().files[entry];
  const std::string leaf =
      std::string{disk::leaf_of(list::final_name(file.name, there_before.number))};
  struct stat status {};
  if (file.is_symlink()) {
    if (::fstatat(folder, leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        status.st_ino != there_before.other)
      return;
    const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, disk::time_of(file.mtime_ns)};
    static_cast<void>(::utimensat(folder, leaf.c_str(), times, AT_SYMLINK_NOFOLLOW));
    return;
  }
  const Fd there = disk::open_beneath(folder, leaf, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  // It may be another file by now.
  if (!there.is_open() || ::fstat(there.get(), &status) != 0 || status.st_ino != there_before.other)
    return;
  static_cast<void>(disk::set_mode(there.get(), (status.st_mode & 07000) | mode_of(entry)));
  static_cast<void>(disk::set_mtime(there.get(), file.mtime_ns));
}

}  // namespace onehop::sink
