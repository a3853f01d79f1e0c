// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/source_files.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "engine/crypto/digest.hpp"
#include "engine/file/file_bytes.hpp"

namespace onehop::file {

namespace {

constexpr int open_flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

std::int64_t nanoseconds(const timespec& t) noexcept {
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

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

}  // namespace

std::string_view kind_text(mode_t mode) noexcept {
  if (S_ISFIFO(mode)) return "it is a fifo";
  return S_ISSOCK(mode) ? "it is a socket" : "it is a device";
}

std::string attempt_to_offer(const std::string& path) {
  return std::string{"offer "}.append(path.empty() ? "''" : display_name(path));
}

Fence fence_of(const struct stat& status) noexcept {
  const std::array<std::uint64_t, 3> fields{
      static_cast<std::uint64_t>(status.st_size),
      static_cast<std::uint64_t>(nanoseconds(status.st_mtim)),
      static_cast<std::uint64_t>(nanoseconds(status.st_ctim))};
  const Digest digest =
      crypto::block_digest(crypto::DigestKind::xxh3, std::as_bytes(std::span{fields}));
  Fence fence;
  std::memcpy(&fence.hash, digest.data(), sizeof fence.hash);
  return fence;
}

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
  return read_at(fd, {&byte, 1}, offset) == 1;
}

Result<Fd> open_regular(const std::string& path, struct stat& status) {
  const std::string attempt = attempt_to_offer(path);
  // fstatat first: opening a device can act on it (a tape rewinds).
  if (::fstatat(AT_FDCWD, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return errno_error(ExitCode::local_file_error, attempt, "Give a path that is there");
  if (!S_ISREG(status.st_mode)) return refuse_kind(path, status.st_mode);
  Fd fd{::open(path.c_str(), open_flags | O_NOFOLLOW)};
  if (!fd.is_open())
    return errno_error(ExitCode::local_file_error, attempt,
                       "Give the path of a file that you may read");
  if (::fstat(fd.get(), &status) != 0) return errno_error(ExitCode::local_file_error, attempt);
  if (!S_ISREG(status.st_mode)) return refuse_kind(path, status.st_mode);
  return fd;
}

std::string path_of(const SourceRoot& root, const std::string& name) {
  return name.size() <= root.name_offset ? root.path : root.path + name.substr(root.name_offset);
}

Result<Fd> SourceNames::open(std::size_t index, struct stat& status) const {
  const std::string path = path_of(index);
  if (!places[index].is_link) return open_regular(path, status);
  const SourceRoot& root = root_of(index);
  const Fd folder{::open(root.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  Fd fd = folder.is_open() ? open_beneath(folder.get(), path.substr(root.path.size())) : Fd{};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0)
    return errno_error(ExitCode::local_file_error, attempt_to_offer(path));
  if (!S_ISREG(status.st_mode)) return refuse_kind(path, status.st_mode);
  return fd;
}

Result<Fd> SourceNames::look_at_symlink(std::size_t index, struct stat& status) const {
  const std::string path = path_of(index);
  if (::fstatat(AT_FDCWD, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return errno_error(ExitCode::local_file_error, attempt_to_offer(path));
  if (!S_ISLNK(status.st_mode)) return refusal(path, "it is no symbolic link any more", {});
  const std::string_view below =
      std::string_view{manifest.files[index].name}.substr(root_of(index).name_offset);
  if (const std::string fault = symlink_fault(AT_FDCWD, path, below, status); !fault.empty())
    return refusal(path, fault, {});
  return Fd{};
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

Fd open_beneath(int folder, const std::string& name) {
  struct stat status {};
  open_how how{
      .flags = O_PATH | O_CLOEXEC, .mode = 0, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
  // A look first, as opening a device can act on it.
  const Fd look{static_cast<int>(::syscall(SYS_openat2, folder, name.c_str(), &how, sizeof how))};
  if (!look.is_open() || ::fstat(look.get(), &status) != 0) return {};
  if (!S_ISREG(status.st_mode)) {
    errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    return {};
  }
  how.flags = open_flags;
  return Fd{static_cast<int>(::syscall(SYS_openat2, folder, name.c_str(), &how, sizeof how))};
}

void SourceFiles::add(ManifestEntry entry, SourcePlace place, SourceFile file) {
  manifest.files.push_back(std::move(entry));
  places.push_back(place);
  files.push_back(std::move(file));
}

Result<void> add_file(const std::string& path, std::vector<SourceRoot>& roots,
                      SourceFiles& source) {
  struct stat status {};
  ONEHOP_TRY(fd, open_regular(path, status));
  if (status.st_size == 0 && has_content_at(fd.get(), 0))
    return refusal(path, "its size says 0 bytes, and it holds more, as files of /proc do",
                   "Copy it with cat, then send the copy");
  const std::size_t base = path.rfind('/') + 1;  // npos + 1 is 0
  if (source.files.size() >= open_files_kept) fd.close();
  source.add(entry_of(path.substr(base), status),
             {.root = static_cast<std::uint32_t>(roots.size()), .is_link = false},
             {.fd = std::move(fd), .fence = fence_of(status)});
  roots.push_back({.path = path.substr(0, base), .name_offset = 0, .is_folder = false});
  return success();
}

ManifestEntry entry_of(std::string name, const struct stat& status) {
  const EntryKind kind = S_ISDIR(status.st_mode)   ? EntryKind::folder
                         : S_ISLNK(status.st_mode) ? EntryKind::symlink
                                                   : EntryKind::file;
  return {.name = std::move(name),
          .size = kind == EntryKind::folder ? 0 : static_cast<std::uint64_t>(status.st_size),
          .mode = status.st_mode & 0777,
          .mtime_ns = nanoseconds(status.st_mtim),
          .kind = kind};
}

Error same_name(const SourceRoot& root, const SourceRoot& other, const std::string& name) {
  return refusal(path_of(root, name),
                 display_name(path_of(other, name)).append(" would arrive under the same name"),
                 "Send one of them in a session of its own");
}

}  // namespace onehop::file
