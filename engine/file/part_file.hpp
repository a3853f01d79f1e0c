// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PartFile: one file on its way to its final name: ".NAME.part", its lock, and its journal.
//
//   open() ─▶ ".NAME.part" (mode 0600, flock) ─▶ data at its offset ─▶ record() ─▶ finish() ─▶ NAME
//               └─▶ ".NAME.onehop-journal"                               └─ keep(): stays for the next session
//
// The final name appears only in finish(), by a rename that replaces nothing unless that was asked for. Two receivers
// never share a part: whoever holds the flock owns it. What another session owns is left alone, and the next number is
// taken (".NAME.1.part"). Clean-up unlinks by folder descriptor, and only where the name still leads to our inode.
// Called by set-up and then by the file thread that owns the Sink.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/file/confined.hpp"
#include "engine/file/journal.hpp"
#include "engine/file/manifest.hpp"

namespace onehop::file {

/// What to do where a final name exists. `ask` is for a person in front of the program: set-up fails and names the
/// file.
enum class OnExist : std::uint8_t { ask, resume, skip, rename, overwrite };

struct PartOptions {
  crypto::DigestKind digest_kind = crypto::DigestKind::xxh3;
  OnExist on_exist = OnExist::ask;
  mode_t umask_bits = 022;
  bool is_changed = false;  ///< the file changed at its source in this session: progress of what it was may go
  bool is_creating = true;  ///< false: only look for a part that can be resumed
};

/// The outcome of finish(): none, or what failed and the errno.
struct FinishResult {
  FileFailure failure = FileFailure::none;
  int errno_value = 0;
};

class PartFile {
 public:
  /// open takes or makes the part of `entry` below `root`. With is_creating false and nothing to resume, the result
  /// is not open. Error: errno_value says why. Syscalls: openat2, flock, fstat, fstatat, read, ftruncate, pwrite.
  [[nodiscard]] static Result<PartFile> open(int root, const ManifestEntry& entry, const PartOptions& options);

  [[nodiscard]] bool is_open() const noexcept { return part_.is_open(); }
  [[nodiscard]] int fd() const noexcept { return part_.get(); }
  [[nodiscard]] std::vector<std::string>& folders_made() noexcept { return place_.made; }
  /// listed: what the journal of the last session says; it proves nothing. Sorted by block, each block once.
  [[nodiscard]] const std::vector<Claim>& listed() const noexcept { return listed_; }

  /// record appends to the journal; call it for blocks whose data was synced. 0 or errno. Syscalls: pwrite.
  [[nodiscard]] int record(std::span<const Claim> claims);
  /// sync_journal: 0 or errno. Syscalls: fdatasync.
  [[nodiscard]] int sync_journal() noexcept;

  /// finish gives the file its mode, time and final name, durably, and removes the journal. May block on the disk.
  /// Syscalls: fchmod, futimens, fsync, fstatat, renameat2, unlinkat.
  [[nodiscard]] FinishResult finish(const ManifestEntry& entry, const PartOptions& options);

  /// remove takes back a part that received nothing. Only names that this session made. Syscalls: fstatat, unlinkat.
  void remove() noexcept;

  /// final_number: the file got the name numbered_leaf(announced, final_number()), as it may under OnExist::rename.
  /// 0: the announced one.
  [[nodiscard]] unsigned final_number() const noexcept { return final_number_; }

 private:
  enum class Taken : std::uint8_t { ours, not_ours, absent, error };
  [[nodiscard]] Taken try_names(unsigned number, const ManifestEntry& entry, const PartOptions& options);
  [[nodiscard]] Taken adopt(const JournalHeader& header, const PartOptions& options);
  [[nodiscard]] Taken start_journal(const JournalHeader& header, bool is_needed);
  [[nodiscard]] int make_journal();
  [[nodiscard]] int rename_to_final(const PartOptions& options);

  Place place_;
  std::string part_name_, journal_name_, final_leaf_;
  Fd part_, journal_;
  JournalWriter writer_{JournalHeader{}};
  std::uint64_t journal_bytes_ = 0;
  unsigned final_number_ = 0;
  std::vector<Claim> listed_;
  bool is_part_made_ = false;  // by this session: what it may remove
};

/// read_at reads up to `bytes` at `offset`; less only at the end of the file. Bytes or -errno. Syscalls: pread.
[[nodiscard]] std::int64_t read_at(int fd, std::byte* out, std::size_t bytes, std::uint64_t offset) noexcept;

}  // namespace onehop::file
