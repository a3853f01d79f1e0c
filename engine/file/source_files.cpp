// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/source_files.hpp"

#include <fcntl.h>

#include <unordered_map>

#include "engine/file/file_bytes.hpp"

namespace onehop::file {

namespace {

std::int64_t nanoseconds(const timespec& t) noexcept {
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

std::string attempt_to_offer(const std::string& path) {
  return std::string{"offer "}.append(path.empty() ? "''" : display_name(path));
}

Error refusal(const std::string& path, std::string_view cause, std::string_view hint) {
  return {ExitCode::local_file_error, attempt_to_offer(path), std::string{cause}, std::string{hint},
          0};
}

Error refuse_kind(const std::string& path, mode_t mode) {
  if (S_ISDIR(mode))
    return refusal(path, "it is a folder", "Name the files in it, or pack it first");
  if (S_ISLNK(mode))
    return refusal(path, "it is a symbolic link", "Name the file that it points to");
  return refusal(path,
                 S_ISFIFO(mode)   ? "it is a fifo"
                 : S_ISSOCK(mode) ? "it is a socket"
                                  : "it is a device",
                 "Only regular files can be sent");
}

}  // namespace

Fence fence_of(const struct stat& status) noexcept {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = static_cast<std::uint64_t>(status.st_size),
          .mtime_ns = nanoseconds(status.st_mtim),
          .ctime_ns = nanoseconds(status.st_ctim)};
}

bool has_content_at(int fd, std::uint64_t offset) noexcept {
  std::byte byte{};
  return read_at(fd, {&byte, 1}, offset) == 1;
}

Result<SourceFile> open_regular(const std::string& path, mode_t* mode) {
  struct stat status {};
  const std::string attempt = attempt_to_offer(path);
  // fstatat first: opening a device can act on it (a tape rewinds).
  if (::fstatat(AT_FDCWD, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return errno_error(ExitCode::local_file_error, attempt, "Give the path of a regular file");
  if (!S_ISREG(status.st_mode)) return refuse_kind(path, status.st_mode);
  constexpr int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  SourceFile file{.path = path, .fd = Fd{::open(path.c_str(), flags)}, .fence = {}};
  if (!file.fd.is_open())
    return errno_error(ExitCode::local_file_error, attempt,
                       "Give the path of a file that you may read");
  if (::fstat(file.fd.get(), &status) != 0) return errno_error(ExitCode::local_file_error, attempt);
  if (!S_ISREG(status.st_mode)) return refuse_kind(path, status.st_mode);
  file.fence = fence_of(status);
  if (status.st_size == 0 && has_content_at(file.fd.get(), 0))
    return refusal(path, "its size says 0 bytes, and it holds more, as files of /proc do",
                   "Copy it with cat, then send the copy");
  if (mode != nullptr) *mode = status.st_mode & 0777;
  return file;
}

Result<SourceFiles> open_source_files(std::span<const std::string> paths,
                                      const ManifestLimits& limits) {
  SourceFiles source;
  std::unordered_map<std::string, const std::string*> path_by_name;
  for (const std::string& path : paths) {
    mode_t mode = 0;
    ONEHOP_TRY(file, open_regular(path, &mode));
    std::string base = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
    const auto [at, is_new] = path_by_name.emplace(base, &path);
    if (!is_new)
      return refusal(path, display_name(*at->second).append(" would arrive under the same name"),
                     "Send one of them in a session of its own");
    source.manifest.files.push_back({.name = std::move(base),
                                     .size = file.fence.size,
                                     .mode = mode,
                                     .mtime_ns = file.fence.mtime_ns});
    if (source.files.size() >= open_files_kept) file.fd.close();
    source.files.push_back(std::move(file));
  }
  ONEHOP_TRYV(validate(source.manifest, limits));
  return source;
}

}  // namespace onehop::file
