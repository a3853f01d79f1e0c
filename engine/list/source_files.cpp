// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/list/source_files.hpp"

#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "engine/base/display_name.hpp"
#include "engine/base/system/descriptors.hpp"
#include "engine/crypto/digest.hpp"
#include "engine/disk/confined.hpp"
#include "engine/disk/file_bytes.hpp"

namespace onehop::list {

namespace {

constexpr std::uint64_t has_inode_bit = 1;

Error refusal(const std::string& path, std::string_view cause, std::string_view hint) {
  return {ExitCode::local_file_error, attempt_to_offer(path), std::string{cause}, std::string{hint},
          0};
}

Error refuse_kind(const std::string& path, mode_t mode) {
  if (S_ISDIR(mode)) return refusal(path, "it is a folder", "Name a regular file");
  if (S_ISLNK(mode))
    return refusal(path, "it is a symbolic link", "Name the file that it points to");
  return refusal(path, kind_text(mode), "Only regular files can be sent");
}

/// linux/magic.h does not name all of them.
constexpr std::array<long, 6> magics_without_inodes{
    0x4d44,      // vfat
    0x2011bab0,  // exfat
    0x65735546,  // fuse
    0xff534d42,  // cifs
    0xfe534d42,  // smb2 and later
    0x786f4256,  // vboxsf
};

}  // namespace

std::string_view kind_text(mode_t mode) noexcept {
  if (S_ISFIFO(mode)) return "it is a fifo";
  return S_ISSOCK(mode) ? "it is a socket" : "it is a device";
}

std::string attempt_to_offer(const std::string& path) {
  return std::string{"offer "}.append(path.empty() ? "''" : display_name(path));
}

bool has_inodes(int fd) noexcept {
  struct statfs system {};
  return ::fstatfs(fd, &system) != 0 ||
         std::ranges::find(magics_without_inodes, static_cast<long>(system.f_type)) ==
             magics_without_inodes.end();
}

Fence fence_of(const struct stat& status, bool has_inode) noexcept {
  const std::array<std::uint64_t, 5> fields{
      has_inode ? status.st_dev : 0, has_inode ? status.st_ino : 0,
      static_cast<std::uint64_t>(status.st_size),
      static_cast<std::uint64_t>(disk::ns_of(status.st_mtim)),
      static_cast<std::uint64_t>(disk::ns_of(status.st_ctim))};
  const Digest digest =
      crypto::block_digest(crypto::DigestKind::xxh3, std::as_bytes(std::span{fields}));
  Fence fence;
  std::memcpy(&fence.hash, digest.data(), sizeof fence.hash);
  fence.hash = (fence.hash & ~has_inode_bit) | (has_inode ? has_inode_bit : 0);
  return fence;
}

bool is_within(const Fence& fence, const struct stat& status) noexcept {
  return fence_of(status, (fence.hash & has_inode_bit) != 0) == fence;
}

std::size_t open_files_max() { return std::min(open_files_kept, descriptors_left() / 4); }

FileFailure failure_of(int errno_value) noexcept {
  switch (errno_value) {
    case ENOENT: return FileFailure::source_vanished;
    case 0:
    case EACCES:
    case EINVAL:  // of readlink: it is no link any more
    case EISDIR:
    case ELOOP:
    case ENOTDIR:
    case ESTALE: return FileFailure::source_changed;
    default: return FileFailure::read_error;
  }
}

bool has_content_at(int fd, std::uint64_t offset) noexcept {
  std::byte byte{};
  return disk::read_at(fd, {&byte, 1}, offset) == 1;
}

Result<Fd> open_regular(int folder, const char* leaf, const std::string& path,
                        struct stat& status) {
  const std::string attempt = attempt_to_offer(path);
  // fstatat first: opening a device can act on it (a tape rewinds).
  if (::fstatat(folder, leaf, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return errno_error(ExitCode::local_file_error, attempt, "Give a path that is there");
  if (!S_ISREG(status.st_mode)) return refuse_kind(path, status.st_mode);
  Fd fd = disk::open_beneath(folder, leaf, source_file_flags);
  if (!fd.is_open())
    return errno_error(ExitCode::local_file_error, attempt,
                       "Give the path of a file that you may read. If another file took its place "
                       "while it was being sent, run the same command again");
  if (::fstat(fd.get(), &status) != 0) return errno_error(ExitCode::local_file_error, attempt);
  if (!S_ISREG(status.st_mode)) return refuse_kind(path, status.st_mode);
  return fd;
}

std::string path_of(const SourceRoot& root, const std::string& name) {
  return name.size() <= root.name_offset ? root.path : root.path + name.substr(root.name_offset);
}

std::string symlink_fault(int folder, const std::string& leaf, std::string_view name,
                          const struct stat& status) {
  std::string target(target_bytes_max + 1, '\0');
  const ssize_t bytes = ::readlinkat(folder, leaf.c_str(), target.data(), target.size());
  if (bytes < 0) return errno_text(errno);
  if (bytes != status.st_size) return "it is a symbolic link whose size is not that of its target";
  target.resize(static_cast<std::size_t>(bytes));
  return std::string{target_fault(name, target)};
}

Fd open_followed(int folder, const std::string& name) {
  struct stat status {};
  // A look first, as opening a device can act on it.
  const Fd look = disk::open_beneath(folder, name, O_PATH, 0, disk::Links::beneath);
  if (!look.is_open() || ::fstat(look.get(), &status) != 0) return {};
  if (!S_ISREG(status.st_mode)) {
    errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    return {};
  }
  return disk::open_beneath(folder, name, source_file_flags, 0, disk::Links::beneath);
}

void SourceFiles::add(ManifestEntry entry, SourcePlace place, SourceFile file) {
  manifest.files.push_back(std::move(entry));
  places.push_back(place);
  files.push_back(std::move(file));
}

Result<void> add_file(const std::string& path, ParentFolders& parents,
                      std::vector<SourceRoot>& roots, SourceFiles& source, std::size_t kept_max) {
  const std::string base = path.substr(0, path.rfind('/') + 1);  // npos + 1 is 0
  std::shared_ptr<const Fd>& parent = parents[base];
  if (!parent) {
    Fd folder{::open(base.empty() ? "." : base.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
    if (!folder.is_open())
      return errno_error(ExitCode::local_file_error, attempt_to_offer(path),
                         "Give a path that is there");
    parent = std::make_shared<const Fd>(std::move(folder));
  }
  struct stat status {};
  ONEHOP_TRY(fd, open_regular(parent->get(), path.c_str() + base.size(), path, status));
  if (status.st_size == 0 && has_content_at(fd.get(), 0))
    return refusal(path, "its size says 0 bytes, and it holds more, as files of /proc do",
                   "Copy it with cat, then send the copy");
  const Fence fence = fence_of(status, has_inodes(fd.get()));
  if (source.files.size() >= kept_max) fd.close();
  source.add(entry_of(path.substr(base.size()), status),
             {.root = static_cast<std::uint32_t>(roots.size()), .is_link = false},
             {.fd = std::move(fd), .fence = fence});
  roots.push_back({.path = base, .name_offset = 0, .is_folder = false, .folder = parent});
  return success();
}

ManifestEntry entry_of(std::string name, const struct stat& status) {
  const EntryKind kind = S_ISDIR(status.st_mode)   ? EntryKind::folder
                         : S_ISLNK(status.st_mode) ? EntryKind::symlink
                                                   : EntryKind::file;
  return {.name = std::move(name),
          .size = kind == EntryKind::folder ? 0 : static_cast<std::uint64_t>(status.st_size),
          .mode = status.st_mode & 0777,
          .mtime_ns = disk::ns_of(status.st_mtim),
          .kind = kind};
}

Error same_name(const SourceRoot& root, const SourceRoot& other, const std::string& name) {
  return refusal(path_of(root, name),
                 display_name(path_of(other, name)).append(" would arrive under the same name"),
                 "Send one of them in a session of its own");
}

}  // namespace onehop::list
