// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SourceFiles: the files named on the command line, opened and fenced.
//
// A fence is what fstat said when the file was offered. It is compared before the first and after
// the last block, so a file that changes on the way is never announced as if it had not. Regular
// files only, symbolic links are not followed. Made by set-up, then owned by the Source.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/file/manifest.hpp"

namespace onehop::file {

struct Fence {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;
  bool operator==(const Fence&) const = default;
};
[[nodiscard]] Fence fence_of(const struct stat& status) noexcept;

struct SourceFile {
  std::string path;
  Fd fd;  ///< open for the first open_files_kept files; others are opened when their turn comes
  Fence fence;
};

struct SourceFiles {
  Manifest manifest;
  std::vector<SourceFile> files;  ///< by manifest index
};

/// Descriptors kept from offer to end. Higher: the soft limit of 1024 is in reach. Lower: a file
/// deleted before its turn is lost although an open descriptor would have kept it.
inline constexpr std::size_t open_files_kept = 256;

/// open_source_files makes the manifest from paths; each file is offered under its base name. A
/// folder, a device, a fifo, a socket, a link, an unreadable file, one of size 0 that has content
/// (/proc), and two paths with one base name are errors with exit 8. Syscalls: fstatat, open, fstat
/// per path; pread of an empty one.
[[nodiscard]] Result<SourceFiles> open_source_files(std::span<const std::string> paths,
                                                    const ManifestLimits& limits = {});

/// has_content_at: a byte can be read at `offset`, beyond a wrong size. Syscalls: pread.
[[nodiscard]] bool has_content_at(int fd, std::uint64_t offset) noexcept;

/// open_regular opens a regular file for reading, follows no link, and is not blocked by a fifo.
[[nodiscard]] Result<SourceFile> open_regular(const std::string& path, mode_t* mode);

}  // namespace onehop::file
