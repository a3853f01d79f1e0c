// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PartFile: one file on its way to its final name: ".NAME.part", its lock, and its journal.
//
//   open() ─▶ ".NAME.part", mode 0600, flock ─▶ data ─▶ record() ─▶ sync ─▶ finish() ─▶ NAME
//               └─▶ ".NAME.onehop-journal"; for a small one a record in the session's journal
//
// A part that exists is ours by its journal or by a record of its inode (session_journal.hpp),
// never by its name or mode. Where somebody else has that name, or a session that runs, another one
// is used that nobody can guess (".NAME.0123456789abcdef.part"). What dead sessions left for a name
// is found by a look at its folder. The newest part goes on, also where size, mode or time of the
// file have changed since: every block is compared by its digest. The others are removed.
//
// record() is for blocks that the kernel has: what it writes survives the end of this process. It
// survives a power cut only after a sync. A sync that fails takes it back: from then on the page
// cache may show bytes that the disk does not have.
//
// The final name appears only in finish(), by a rename that replaces nothing unless the user asked
// for that. Two receivers never share a part: whoever holds the flock owns it. Clean-up unlinks
// only names that lead to our inode. Set-up calls it, then the file thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/file_message.hpp"
#include "engine/base/result.hpp"
#include "engine/disk/confined.hpp"
#include "engine/disk/journal.hpp"
#include "engine/disk/page_cache.hpp"
#include "engine/list/manifest.hpp"
#include "engine/sink/destination.hpp"

namespace onehop::sink {

/// What to do where a final name exists. `ask` is for a person: set-up fails and names the file.
enum class OnExist : std::uint8_t { ask, resume, skip, rename, overwrite };
/// needs_record: only a record in the session's journal tells the next session that this one
/// delivered a file. By its name it is found again under other policies, and compared.
[[nodiscard]] constexpr bool needs_record(OnExist on_exist) noexcept {
  return on_exist == OnExist::ask || on_exist == OnExist::rename;
}

/// PartStems are names of parts and journals in one folder, without ".part" and ".onehop-journal";
/// sorted.
using PartStems = std::vector<std::string>;
/// list_stems is what is called as a part or a journal in `folder`. Syscalls: as list_names.
[[nodiscard]] PartStems list_stems(int folder);
/// stems_of are those of `stems` that sessions use for a file that is called `leaf`.
[[nodiscard]] PartStems stems_of(const PartStems& stems, std::string_view leaf);

struct PartOptions {
  PartStems stems;          ///< stems_of() the entry
  bool is_creating = true;  ///< false: only look for a part that can be resumed
};

/// The outcome of finish(): none, or what failed and the errno. EEXIST: the name stays another's.
struct FinishResult {
  FileFailure failure = FileFailure::none;
  int errno_value = 0;
  bool is_there = false;  ///< another receiver's file of this very content has the name
};

/// give_name gives `from` its final name `leaf` as the policy says: over nothing, or over what is
/// of its kind where the user asked for that, and over an empty folder then. `number`: the name got
/// is numbered_leaf(leaf, number); 0: leaf itself. 0 or errno; EEXIST: the name stays another's.
/// Syscalls: renameat2, fstatat, unlinkat.
[[nodiscard]] int give_name(int from_folder, const std::string& from, int folder,
                            const std::string& leaf, OnExist on_exist, unsigned& number);
/// is_same_content compares two files, or the targets of two links. May block. Syscalls: openat2,
/// fstat, pread; readlinkat.
[[nodiscard]] bool is_same_content(int from_folder, const std::string& from, int folder,
                                   const std::string& leaf);

class PartFile {
 public:
  /// open takes or makes the part of `entry` in `destination`. Not open: is_creating is false and
  /// nothing is there. Error: errno_value says why; EFBIG: no file there can be so large. Syscalls:
  /// openat2, flock, fstat, fstatat, fallocate, read, ftruncate, pwrite; fdatasync of the session's
  /// journal for a small file; statx and chmod of a part that has its final mode.
  [[nodiscard]] static Result<PartFile> open(Destination& destination,
                                             const list::ManifestEntry& entry,
                                             const PartOptions& options);

  [[nodiscard]] bool is_open() const noexcept { return part_.is_open(); }
  [[nodiscard]] int fd() const noexcept { return part_.get(); }
  /// open_again gives another descriptor of the part, to read by. Syscalls: openat2, fstat.
  [[nodiscard]] Fd open_again() const;
  [[nodiscard]] std::vector<std::string>& folders_made() noexcept { return place_.made; }
  /// begin makes the part one of this session: its length and journal are those of the entry from
  /// then on. Once, before anything is written. 0 or errno. Syscalls: ftruncate, pwrite, openat2,
  /// statx.
  [[nodiscard]] int begin(Destination& destination);
  /// listed: what the journal of the last session says; it proves nothing. By block, each once.
  [[nodiscard]] const std::vector<Claim>& listed() const noexcept { return listed_; }

  /// record appends blocks whose write has ended. 0 or errno. Syscalls: pwrite.
  [[nodiscard]] int record(std::span<const Claim> claims);
  /// has_unsynced: the journal says more than a power cut would leave.
  [[nodiscard]] bool has_unsynced() const noexcept {
    return journal_.is_open() && synced_bytes_ < journal_bytes_;
  }
  /// begin_sync, then fdatasync(fd()), then end_sync with its result: what was recorded before
  /// begin_sync is on the disk or taken back. 0 or errno. Syscalls: fdatasync, or ftruncate.
  void begin_sync() noexcept {
    syncing_bytes_ = journal_bytes_;
    syncing_end_ = written_end_;
  }
  [[nodiscard]] int end_sync(int errno_value) noexcept;

  /// expect says that a block is about to be written, before it is: the first one chooses whether
  /// the part is written past the page cache. A block that direct I/O does not take, the last one,
  /// ends that: what comes behind it are a few that were lost. Syscalls: as PageCache::choose.
  void expect(disk::PageCache& cache, std::uint64_t offset, std::uint32_t bytes) noexcept;
  [[nodiscard]] bool is_direct() const noexcept { return way_ && way_->is_direct(); }
  /// give_up_direct: a write failed, or moved too few bytes (0). True: it may have been direct, so
  /// that the rest is to be written again. Syscalls: fcntl.
  [[nodiscard]] bool give_up_direct(disk::PageCache& cache, int errno_value) noexcept;

  /// make_hole lets a range that is all zero take no room on the disk; false: the zeros have to be
  /// written. `size` is the whole file's. Syscalls: fallocate; ftruncate for the first one.
  [[nodiscard]] bool make_hole(std::uint64_t offset, std::uint64_t bytes,
                               std::uint64_t size) noexcept;

  /// clear makes a range read as zeros that nothing of this session was written to. 0 or errno. It
  /// may block where the file system cannot punch holes. Syscalls: as make_hole, or else pwrite.
  [[nodiscard]] int clear(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size);

  /// finish gives the file mode, time and final name, and removes the journal. May block. Syscalls:
  /// fchmod, futimens, fsync, fstatat, renameat2, unlinkat; pwrite to the session's journal, and
  /// fdatasync of it where the policy needs_record().
  [[nodiscard]] FinishResult finish(Destination& destination, const list::ManifestEntry& entry,
                                    OnExist on_exist);

  /// remove takes back an empty part that this session made, and drop any that is ours. Syscalls:
  /// fstatat, unlinkat.
  void remove() noexcept;
  void drop() noexcept {
    is_part_made_ = true;
    remove();
  }

  /// final_number: the file's name is numbered_leaf(announced, this); 0: the announced one.
  [[nodiscard]] unsigned final_number() const noexcept { return final_number_; }
  /// discard removes what dead sessions left of `entry`, whose stems_of() are known or looked for.
  /// Syscalls: as open, list_stems, unlinkat.
  static void discard(Destination& destination, const list::ManifestEntry& entry,
                      const std::optional<PartStems>& stems = {});

 private:
  enum class Taken : std::uint8_t { ours, not_ours, error };
  enum class Purpose : std::uint8_t { look, create, remove };
  void set_stem(const std::string& stem, const std::string& leaf);
  void let_go() noexcept;
  [[nodiscard]] Taken create(Destination& destination);
  void drop_synced() noexcept;
  [[nodiscard]] Taken adopt(Destination& destination, Purpose purpose);
  [[nodiscard]] bool take_listed(const disk::JournalHeader& found);
  [[nodiscard]] bool is_journaled(const disk::JournalHeader& found) const noexcept;
  [[nodiscard]] bool make_writable(disk::SessionJournal& session) const;
  [[nodiscard]] Taken start_journal(Destination& destination, bool is_needed);
  [[nodiscard]] int make_journal();
  [[nodiscard]] int rewrite_journal();
  [[nodiscard]] bool remove_orphan() noexcept;

  disk::Place place_;
  disk::JournalHeader header_;  // of the entry
  std::string part_name_, journal_name_;
  bool is_plain_name_ = true;  // ".NAME.part", without a tag or a number
  Fd part_, journal_;
  disk::JournalWriter writer_{disk::JournalHeader{}};
  std::uint64_t journal_bytes_ = 0, syncing_bytes_ = 0, synced_bytes_ = 0;
  unsigned final_number_ = 0;
  std::vector<Claim> listed_;
  bool is_part_made_ = false;    // by this session: what it may remove
  bool is_begun_ = false;        // length and journal are those of the entry
  std::uint64_t old_bytes_ = 0;  // what earlier sessions wrote ends here
  bool is_full_length_ = false, is_hole_refused_ = false;
  std::optional<disk::CacheWay> way_;  // once something is written
  bool was_direct_ = false;
  // Where what was written ends: all of it, that which a sync covers, and that which has left the
  // page cache.
  std::uint64_t written_end_ = 0, syncing_end_ = 0, dropped_end_ = 0;
};

}  // namespace onehop::sink
