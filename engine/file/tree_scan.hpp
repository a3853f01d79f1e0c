// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// scan: the files and folders that the command line names, with all that the folders hold.
//
//   FILE, DIR, DIR/ ─▶ scan() ─┬─▶ SourceFiles: files by inode, then subfolders, then the folder
//                              └─▶ ScanProblem: what is left out although no rule says so
//
// A folder comes after all that it holds: its mode and its time are set when nothing changes it
// any more.
//
// DIR arrives as the folder DIR; `DIR/` gives what it holds, without a folder around it. Below a
// folder nothing stops the scan but a limit of the list: what cannot be sent is a problem, and the
// rest goes on. A file that is named itself and cannot be sent is an error, as it always was.
//
// The walk goes by descriptors and follows no link, so a folder that is exchanged meanwhile leads
// nowhere else. Files are opened by path when their turn comes; the fence says whether it is still
// that file. Made by set-up, which may block on a slow disk.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/file/ignore.hpp"
#include "engine/file/manifest.hpp"
#include "engine/file/source_files.hpp"

namespace onehop::file {

/// Symlinks: what becomes of a symbolic link below a folder.
enum class Symlinks : std::uint8_t {
  skip,           ///< left out, and listed
  error,          ///< the scan fails
  follow_inside,  ///< to a file below the same argument: sent as that file; any other is a problem
};

struct ScanOptions {
  IgnoreRules rules;  ///< for what is below a folder; what is named itself is always sent
  Symlinks symlinks = Symlinks::skip;
  bool is_one_file_system = false;  ///< a folder on another file system arrives empty
  bool lists_excluded = false;      ///< Scan::excluded is filled
  ManifestLimits limits;
};

enum class ScanProblemKind : std::uint8_t {
  unreadable,
  special,          ///< socket, fifo, device
  symlink_skipped,  ///< no failure: it is what Symlinks::skip means
  symlink_refused,  ///< it leads out of its folder, or to no file
  reserved_name,    ///< a name that a receiver keeps for its own state
  vanished,
};
[[nodiscard]] std::string_view name_of(ScanProblemKind kind) noexcept;

struct ScanProblem {
  std::string path;
  ScanProblemKind kind = ScanProblemKind::unreadable;
  std::string cause;
};
[[nodiscard]] constexpr bool is_failure(const ScanProblem& problem) noexcept {
  return problem.kind != ScanProblemKind::symlink_skipped;
}

/// Excluded is what a rule left out; of a folder the folder alone.
struct Excluded {
  std::string path, rule;
};

struct Scan {
  SourceFiles source;
  std::vector<ScanProblem> problems;
  std::vector<Excluded> excluded;
  std::uint64_t files = 0, folders = 0, excluded_total = 0;
  /// Files whose inode was met before under another name: each is sent as a file of its own.
  std::uint64_t hard_links = 0;
};

/// scan makes the list. Syscalls: per folder openat, getdents64; per entry fstatat; per file
/// faccessat2, and of the first open_files_kept openat and fstat.
[[nodiscard]] Result<Scan> scan(std::span<const std::string> paths, const ScanOptions& options);

/// look_again makes the list anew from what the entries are now. One below a folder that has
/// vanished or cannot be read is dropped and becomes a problem. Syscalls: per file fstatat, open,
/// fstat.
[[nodiscard]] Result<SourceFiles> look_again(SourceNames names, std::vector<ScanProblem>& problems,
                                             const ManifestLimits& limits = {});

}  // namespace onehop::file
