// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/source/pack_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/base/check.hpp"
#include "engine/disk/file_bytes.hpp"

namespace onehop::source {

namespace {

/// failure_against: none where `fd` is what was offered.
PackSource::Failure failure_against(const list::Fence& fence, int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return {list::failure_of(errno), errno};
  if (list::is_within(fence, status)) return {};
  return {status.st_nlink == 0 ? FileFailure::source_vanished : FileFailure::source_changed, 0};
}

}  // namespace

PackSource::PackSource(const SourceVolume& volume, Shared& shared)
    : files_{*volume.files},
      pack_{volume.answer->pack.get()},
      roots_{volume.answer->pack_roots.get()},
      file_{list::pack_file(volume.files->manifest, volume.first_file)},
      shared_{shared},
      tree_{shared.kind} {}

PackSource::Failure PackSource::add() {
  ONEHOP_CHECK(!is_over());
  const std::uint32_t file = pack_->entries()[next_];
  const list::ManifestEntry& entry = files_.manifest.files[file];
  const auto size = static_cast<std::size_t>(entry.size);
  // Straight into the block where it is sent and has room, with a byte behind it.
  const bool is_sent = pack_->is_whole(static_cast<std::uint32_t>(next_));
  const std::span<std::byte> place = room();
  const bool is_fit = is_sent && size < place.size();
  const std::span<std::byte> buffer =
      is_fit ? place : std::span{&shared_.scratch[0], Shared::scratch_bytes};
  const std::span<std::byte> content = buffer.first(size);
  if (!entry.is_folder())
    if (const Failure failure =
            entry.is_symlink() ? read_symlink(file, content) : read(file, buffer.first(size + 1));
        failure.failure != FileFailure::none)
      return failure;
  const Digest root = list::record_root(shared_.kind, content);
  const Digest leaf = is_sent ? root : shared_.mac.tag(content);
  tree_.add(leaf);
  if (roots_ != nullptr) roots_->set(static_cast<std::uint32_t>(next_), root);
  if (is_fit)
    advance(size);
  else if (is_sent)
    append(content);
  append(std::span{leaf}.first(is_sent ? crypto::digest_bytes(shared_.kind)
                                       : crypto::content_tag_bytes));
  ++next_;
  return {};
}

/// `out` has one byte more than the fence says: a file that grew, or that the kernel makes up as it
/// is read, shows itself.
PackSource::Failure PackSource::read(std::uint32_t index, std::span<std::byte> out) {
  const list::SourceFile& file = files_.files[index];
  Fd opened;
  int fd = file.fd.get();
  if (!file.fd.is_open()) {
    opened = shared_.opener.open(files_, index);
    fd = opened.get();
    if (fd < 0) return {list::failure_of(errno), errno};
  }
  if (const Failure before = failure_against(file.fence, fd); before.failure != FileFailure::none)
    return before;
  const std::size_t size = out.size() - 1;
  const std::int64_t got = disk::read_at_least(fd, out, size, 0);
  const int errno_value = got < 0 ? static_cast<int>(-got) : 0;
  if (errno_value != 0) return {list::failure_of(errno_value), errno_value};
  if (const Failure after = failure_against(file.fence, fd); after.failure != FileFailure::none)
    return after;
  if (got != static_cast<std::int64_t>(size)) return {FileFailure::source_length, 0};
  return {};
}

/// It may be another link by the time it is looked at: then its times are others.
PackSource::Failure PackSource::read_symlink(std::uint32_t index, std::span<std::byte> out) {
  const char* const leaf = list::leaf_in(files_.manifest.files[index].name);
  const int folder = shared_.opener.folder_of(files_, index);
  if (folder < 0) return {list::failure_of(errno), errno};
  const ssize_t got = ::readlinkat(folder, leaf, reinterpret_cast<char*>(out.data()), out.size());
  struct stat status {};
  if (got < 0 || ::fstatat(folder, leaf, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return {list::failure_of(errno), errno};
  if (!list::is_within(files_.files[index].fence, status)) return {FileFailure::source_changed, 0};
  if (got != static_cast<ssize_t>(out.size())) return {FileFailure::source_length, 0};
  return {};
}

std::span<std::byte> PackSource::room() {
  if (block_.data == nullptr) {
    std::uint32_t slot = 0;
    ONEHOP_CHECK(shared_.pool.lend(slot));  // has_room()
    block_.data = shared_.pool.data(slot);
    block_.slot = slot;
    block_.file = file_;
    block_.length = 0;
  }
  return {block_.data + block_.length, block_bytes - block_.length};
}

void PackSource::advance(std::size_t bytes) {
  block_.length += static_cast<std::uint32_t>(bytes);
  const std::uint64_t end = block_.offset + block_.length;
  ONEHOP_CHECK(end <= pack_->bytes());
  if (block_.length < block_bytes && end < pack_->bytes()) return;
  shared_.outbox.push_back(block_);
  block_ = {.offset = end};
}

void PackSource::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<std::byte> place = room();
    const std::size_t count = std::min(place.size(), bytes.size());
    std::memcpy(place.data(), bytes.data(), count);
    advance(count);
    bytes = bytes.subspan(count);
  }
}

}  // namespace onehop::source
