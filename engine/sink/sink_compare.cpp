// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SinkVolume, the comparison: what is there already, block by block. Of each block the sender is
// told a tag, and the tree takes the digest (crypto/content_mac.hpp).
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/display_name.hpp"
#include "engine/disk/confined.hpp"
#include "engine/disk/extents.hpp"
#include "engine/disk/file_bytes.hpp"
#include "engine/disk/zero_block.hpp"
#include "engine/sink/sink_volume.hpp"

namespace onehop::sink {

namespace {

/// Each block that is compared takes 112 bytes, whether the disk has it or not: 470 MB for a
/// tebibyte of holes. Less: such files have to be sent again. More: a size alone takes more memory.
constexpr std::uint64_t hole_blocks_compared_max = std::uint64_t{1} << 22;

}  // namespace

PackHeld SinkVolume::held(std::uint32_t entry) const {
  PackHeld held{.is_kept = actions_[entry] == list::FileAction::compare,
                .name_number = delivered_number(entry)};
  held.block = held_block(entry, 0);
  if (held.block)
    held.root = list::record_root(destination_->options().digest_kind, manifest_.files[entry].size,
                                  held.block->digest);
  return held;
}

std::optional<HeldBlock> SinkVolume::held_block(std::uint32_t entry, std::uint64_t block) const {
  const std::vector<Claim>& claims = claims_of(entry);
  const auto at = std::ranges::lower_bound(claims, block, {}, &Claim::block);
  if (at == claims.end() || at->block != block) return std::nullopt;
  return HeldBlock{.digest = found_[entry].digests[static_cast<std::size_t>(at - claims.begin())],
                   .tag = at->digest};
}

/// The file is there, perhaps this very one. All of it is offered, nothing written.
Result<void> SinkVolume::compare(std::uint32_t entry, int folder, const std::string& leaf) {
  const list::ManifestEntry& file = manifest_.files[entry];
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
  std::vector<Claim> all(blocks_of(file.size));
  for (std::uint64_t block = 0; block < all.size(); ++block) all[block].block = block;
  claim(entry, hash_listed(there.get(), file.size, all));
  is_expected_[entry] = true;
  return success();
}

Result<void> SinkVolume::compare_symlink(std::uint32_t entry, int folder, const std::string& leaf) {
  const list::ManifestEntry& link = manifest_.files[entry];
  buffer_.resize(block_bytes);
  char* const target = reinterpret_cast<char*>(buffer_.data());
  const ssize_t bytes = ::readlinkat(folder, leaf.c_str(), target, buffer_.size());
  if (bytes < 0)
    return errno_error(ExitCode::local_file_error, "compare '" + display_name(link.name) + "'");
  if (struct stat status{}; ::fstatat(folder, leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
    note_other(entry, status);
  const std::span content = std::span{buffer_}.first(static_cast<std::size_t>(bytes));
  Found found;
  found.add(0, hash(content));
  claim(entry, std::move(found));
  is_expected_[entry] = true;
  return success();
}

void SinkVolume::note_other(std::uint32_t entry, const struct stat& status) {
  const list::ManifestEntry& file = manifest_.files[entry];
  const timespec offered = disk::time_of(file.mtime_ns);
  const bool is_same_mode = file.is_symlink() || (status.st_mode & 0777) == mode_of(entry);
  if (!is_same_mode || status.st_mtim.tv_sec != offered.tv_sec ||
      status.st_mtim.tv_nsec != offered.tv_nsec)
    others_.emplace(entry, status.st_ino);
}

/// What keeps no mode or time, or is another user's, stays as it is.
void SinkVolume::bring_over(std::uint32_t entry, int folder) const {
  const auto other = others_.find(entry);
  if (other == others_.end()) return;
  const list::ManifestEntry& file = manifest_.files[entry];
  const std::string leaf =
      std::string{disk::leaf_of(list::final_name(file.name, delivered_number(entry)))};
  struct stat status {};
  if (file.is_symlink()) {
    if (::fstatat(folder, leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        status.st_ino != other->second)
      return;
    const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, disk::time_of(file.mtime_ns)};
    static_cast<void>(::utimensat(folder, leaf.c_str(), times, AT_SYMLINK_NOFOLLOW));
    return;
  }
  const Fd there = disk::open_beneath(folder, leaf, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  // It may be another file by now.
  if (!there.is_open() || ::fstat(there.get(), &status) != 0 || status.st_ino != other->second)
    return;
  static_cast<void>(disk::set_mode(there.get(), (status.st_mode & 07000) | mode_of(entry)));
  static_cast<void>(disk::set_mtime(there.get(), file.mtime_ns));
}

/// What a block is to the tree, and to the sender.
HeldBlock SinkVolume::hash(std::span<const std::byte> content) {
  return {.digest = crypto::block_digest(destination_->options().digest_kind, content),
          .tag = mac_->tag(content)};
}

/// The listed blocks, which ascend, as they are on the disk now. One that cannot be read is left
/// out, and what lies in a hole is not read.
SinkVolume::Found SinkVolume::hash_listed(int fd, std::uint64_t size,
                                          const std::vector<Claim>& listed) {
  Found found;
  found.claims.reserve(listed.size());
  found.digests.reserve(listed.size());
  if (!listed.empty()) buffer_.resize(block_bytes);
  std::byte* const buffer = buffer_.data();
  const crypto::DigestKind kind = destination_->options().digest_kind;
  disk::Extents extents{fd, size};
  for (const Claim& claim : listed) {
    if (options_.withdrawn.stop_requested()) break;
    const std::uint32_t length = block_length_at(size, claim.block * block_bytes);
    if (extents.hole_blocks(claim.block) > 0) {
      found.add(claim.block,
                {.digest = disk::zero_digest(kind, length), .tag = mac_->zero_tag(length)});
      continue;
    }
    if (disk::read_at(fd, {buffer, length}, claim.block * block_bytes) !=
        static_cast<std::int64_t>(length))
      continue;
    found.add(claim.block, hash({buffer, length}));
  }
  return found;
}

void SinkVolume::claim(std::uint32_t entry, Found found) {
  found_.resize(entries());
  found_[entry] = std::move(found);
}

}  // namespace onehop::sink
