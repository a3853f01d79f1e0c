// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// scan: the files and folders that the command line names, with all that the folders hold.
//
//   FILE, DIR, DIR/ ─▶ check_arguments() ─▶ TreeWalk ─▶ VolumeMaker ─┬─▶ scan(): all in one volume
//                                                                    └─▶ ScanThread: one by one
//
// A tree of millions of files is sent while it is read, so the list comes in volumes: runs of
// entries that are offered, transferred and forgotten as a whole. In a folder the files come first,
// by inode, then each subfolder; a folder's own entry follows all that it holds, as its mode and
// time are set when nothing changes it any more.
//
// DIR arrives as the folder DIR; `DIR/` as its contents, without a folder around them. Below a
// folder only too many entries or bytes, two entries of one name, and Symlinks::error stop the
// scan: any other entry that cannot be sent is a ScanProblem, and the rest goes on. An argument
// that cannot be sent is an error, before anything is sent.
//
// The walk goes by descriptors from that of each argument and follows no link, so a folder that is
// exchanged meanwhile leads nowhere else. Files are opened in the same way when their turn comes,
// or when they are examined again (source_opener.hpp); the fence says whether it is still that
// file. May block on a slow disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"
#include "engine/list/ignore.hpp"
#include "engine/list/manifest.hpp"
#include "engine/list/source_files.hpp"

namespace onehop::list {

/// Symlinks: how to treat a symbolic link below a folder.
enum class Symlinks : std::uint8_t {
  skip,           ///< left out, and listed
  error,          ///< the scan fails
  copy,           ///< sent as a link, if its target is inside the argument; else it is a problem
  follow_inside,  ///< to a file below the same argument: sent as that file; any other is a problem
};

struct ScanOptions {
  IgnoreRules rules;  ///< for what is below a folder; what is named itself is always sent
  Symlinks symlinks = Symlinks::skip;
  bool is_one_file_system = false;  ///< a folder on another file system arrives empty
  bool lists_excluded = false;      ///< ScanVolume::excluded is filled
  ManifestLimits limits{.entries_max = std::size_t{1} << 31};  ///< of all volumes together
};

enum class ScanProblemKind : std::uint8_t {
  unreadable,
  special,          ///< socket, fifo, device
  symlink_skipped,  ///< no failure: it is what Symlinks::skip means
  symlink_refused,  ///< it leads out of its folder, or to no file
  name_refused,     ///< a name that no receiver takes: too long, too deep, or for its own state
  vanished,
  changed,  ///< again, when it was sent anew; or its size is not that of its content
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

/// ScanCounts are of all volumes so far.
struct ScanCounts {
  std::uint64_t files = 0, folders = 0;
  std::uint64_t bytes = 0;     ///< of the files
  std::uint64_t excluded = 0;  ///< by a rule; of a folder the folder alone
  /// Files whose inode was met before under another name: each is sent as a file of its own.
  std::uint64_t hard_links = 0;
  bool has_more_hard_links = false;  ///< hard_links is a lower bound (hard_links.hpp)
};

/// ScanVolume is a run of the list. It may have no entry: where there are very many problems, or
/// where it is the last one.
struct ScanVolume {
  SourceFiles source;
  std::vector<ScanProblem> problems;
  std::vector<Excluded> excluded;
  ScanCounts counts;
  bool is_last = false;
};

/// ScanKnown is what the walk has seen so far.
struct ScanKnown {
  std::uint64_t entries = 0, files = 0, bytes = 0;  ///< entries: folders, too
  bool is_complete = false;                         ///< there is no more
};

struct VolumeSizes {
  /// Entries, and problems, of a volume. Higher: more memory at both ends, and a later start.
  /// Lower: an offer and an answer for fewer files.
  std::size_t entries_max = 2048;
  /// Volumes that wait to be taken; one more is being made. Higher: memory. Lower: a slow folder
  /// is felt on the link.
  std::size_t ahead_max = 8;
  /// A volume that is older is given as it is when none waits: on a slow disk the link has work.
  Nanos age_max = 200ms;
};

/// scan makes the whole list, as one volume. Syscalls: those of check_arguments(); per folder
/// openat2, fcntl, fstat, getdents64; per entry fstatat; per file faccessat2, and of the first
/// open_files_kept openat2 and fstat; of a followed link openat2 twice and fstat; per device
/// fstatfs.
[[nodiscard]] Result<ScanVolume> scan(std::span<const std::string> paths,
                                      const ScanOptions& options);

/// leave_out_temporaries: below a folder, a file that is named as the temporary of one beside it
/// (temporaries_in()) becomes a problem.
void leave_out_temporaries(SourceFiles& source, std::vector<ScanProblem>& problems);

/// look_again makes the list anew from what the entries are now. One below a folder that has
/// vanished, cannot be read or is not as long as its size says is dropped and becomes a problem.
/// Syscalls: per file fstatat, openat2, fstat, and pread twice where it takes no room; per folder
/// openat2; per device fstatfs.
[[nodiscard]] Result<SourceFiles> look_again(SourceNames names, std::vector<ScanProblem>& problems,
                                             const ManifestLimits& limits = {});

}  // namespace onehop::list
