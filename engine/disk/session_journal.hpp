// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SessionJournal: which files a session made, for the session that follows a crash.
//
//   ".onehop-session"   [ header, 16 bytes ][ record ][ record ] ... [ torn tail, ignored ]
//
//   header   magic 8 | version 4 (2) | pid 4
//   record   entry hash 32 | inode 8 | birth 8 | checksum 8   all integers little endian
//
// A file keeps its inode when its mode and its name change. A record therefore proves what a name
// and a mode cannot: that a part is ours whatever state a crash left it in, and that a visible file
// is one that a session of ours delivered. It says nothing about the content.
//
// The file is made at the first record, held under flock while its session lives, and removed when
// all files are done that it lists. Concurrent sessions have one each; if its name is taken, it is
// ".0123456789abcdef.onehop-session", at random. A dead session's journal is continued. What dead
// sessions left is held: the list comes volume by volume, so each lookup shows which of them it
// concerns. A Destination owns it; adopt() is called first, the rest on any thread.
//
// Version 1 had no names in its entry hashes. Its records are used, and stay until their very entry
// is sent again.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/base/fd.hpp"

namespace onehop::disk {

/// FileIdentity names a file on one machine for as long as it exists.
struct FileIdentity {
  std::uint64_t inode = 0;
  std::int64_t birth_ns = 0;  ///< differs where an inode number is used again; 0: unknown
  bool operator==(const FileIdentity&) const = default;
};
/// identity_of `leaf` in `folder`, links not followed; empty: of `folder` itself. Syscalls: statx.
[[nodiscard]] std::optional<FileIdentity> identity_of(int folder, const char* leaf) noexcept;

class SessionJournal {
 public:
  /// Mark is one record.
  struct Mark {
    Digest entry{};
    FileIdentity identity;
  };
  struct Contents {
    std::uint32_t pid = 0;
    std::uint32_t version = 0;
    std::uint64_t bytes = 0;  ///< header and whole records; 0: its session died before these
  };
  /// read passes every record of the journal behind `fd` to `take`. nullopt: it is none of ours.
  /// Syscalls: fstat, pread.
  [[nodiscard]] static std::optional<Contents> read(int fd,
                                                    const std::function<void(const Mark&)>& take);

  /// adopt takes over what dead sessions recorded; with `is_again` it continues the records of this
  /// process. `root` outlives it. Syscalls: openat2, fstat, flock, pread, unlinkat.
  void adopt(int root, bool is_again);

  /// is_empty: no dead session recorded anything.
  [[nodiscard]] bool is_empty() const noexcept { return marks_.empty(); }
  /// is_known: a session of ours began the entry with this hash. Its journal counts as used then,
  /// also where only size, mode or time of the entry have changed.
  [[nodiscard]] bool is_known(const Digest& entry);
  /// is_used: some entry was known.
  [[nodiscard]] bool is_used() const;
  /// is_made: a session of ours made `identity` as its file of the entry with this hash.
  [[nodiscard]] bool is_made(const Digest& entry, const FileIdentity& identity);
  /// is_made_as: the same, for any entry with that last component of its name.
  [[nodiscard]] bool is_made_as(const Digest& entry, const FileIdentity& identity);

  /// add records that the file behind `fd` is this session's file of `entry`; a known one is not
  /// written again. 0 or errno. Syscalls: statx, pwrite; for the first record openat2, flock.
  [[nodiscard]] int add(const Digest& entry, int fd);
  /// sync: 0 or errno. Syscalls: fdatasync, where something was added.
  [[nodiscard]] int sync() noexcept;
  /// remove removes the own file and those that were used, except records of entries that this
  /// session does not have. It releases all. Syscalls: fstatat, unlinkat, ftruncate, pwrite.
  void remove() noexcept;

 private:
  struct File {
    std::string name;
    Fd fd;
    std::uint32_t version = 2;
    std::uint64_t bytes = 0;  ///< header and whole records
    bool is_used = false;     ///< an entry of this session was found in it, or it is the own one
  };
  struct Found {
    Mark mark;
    std::size_t file = 0;   ///< where it was found, in files_
    std::uint64_t key = 0;  ///< key_of()
    bool is_old = false;    ///< of version 1
    bool is_asked = false;  ///< this session has the entry; under the mutex
  };
  template <class Is>
  [[nodiscard]] bool find(const Digest& entry, const Is& is_it);
  [[nodiscard]] static std::uint64_t key_of(const Digest& entry, bool is_old) noexcept;
  [[nodiscard]] int choose_own();
  [[nodiscard]] int create();
  [[nodiscard]] static int write_header(File& file);
  [[nodiscard]] static int append(File& file, const Mark& mark);

  int root_ = -1;
  bool is_again_ = false;
  std::vector<Found> marks_;  // as adopt() left them

  mutable std::mutex mutex_;        // of all below
  std::vector<File> files_;         // held
  std::optional<std::size_t> own_;  // in files_: records go there
  bool is_dirty_ = false;
};

}  // namespace onehop::disk
