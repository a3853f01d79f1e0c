// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PackCommit: gives packed files their final names, a batch at a time, durably.
//
//   staged ─▶ sync of the batch ─▶ rename each, over nothing ─▶ (a chapter's last: mode and time
//   of its folders) ─▶ sync of the folders ─▶ runs
//
// At any instant of a power cut a visible name has its whole content: nothing is renamed before the
// disk has it. Up to synced_singly_max files are synced each; above that one syncfs costs less than
// a sync per file, and it reports write errors (Linux 5.8). It works on a thread of its own, one
// for all chapters of a session, so that the file thread goes on while the disk is busy.
//
// Batches are handed over and runs are taken by the file thread.
#pragma once

#include <sys/stat.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/base/result.hpp"
#include "engine/file/folder_cache.hpp"
#include "engine/file/pack.hpp"
#include "engine/file/pack_roots.hpp"
#include "engine/file/part_file.hpp"
#include "engine/file/stage.hpp"

namespace onehop::file {

struct PackOptions {
  int root = -1;  ///< the destination; outlives all
  crypto::DigestKind digest_kind = crypto::DigestKind::xxh3;
  Durability durability = Durability::batch;
  mode_t umask_bits = 022;
  SessionJournal* session = nullptr;  ///< required; outlives all
};

/// PackHeld: a file that is there. One with another root is an error, or `is_kept`.
struct PackHeld {
  Digest root{};
  bool is_kept = false;
  unsigned name_number = 0;  ///< of its name; see FileDone
};

/// PackList: what is packed of one chapter. It outlives every record of it that is under way.
struct PackList {
  const Manifest& manifest;
  const Pack& pack;
  PackRoots& roots;
  std::uint32_t first_file = 0;                        ///< of the chapter, on the wire
  std::function<OnExist(std::uint32_t entry)> policy;  ///< any thread
  /// held: what is there of an entry of which the pack has the root alone.
  std::function<PackHeld(std::uint32_t entry)> held;
  /// made: an entry has its inode. The file thread.
  std::function<void(std::uint32_t entry)> made;

  [[nodiscard]] const ManifestEntry& entry_of(std::uint32_t ordinal) const {
    return manifest.files[pack.entries()[ordinal]];
  }
  /// file_of is a record's index on the wire, by which its chapter and it are known everywhere.
  [[nodiscard]] std::uint32_t file_of(std::uint32_t ordinal) const {
    return first_file + pack.entries()[ordinal];
  }
};
struct PackRecord {
  const PackList* list = nullptr;
  std::uint32_t ordinal = 0;
  FileOutcome outcome = FileOutcome::received;  ///< another: nothing is to be done
  unsigned name_number = 0;                     ///< of one that was there
  [[nodiscard]] const ManifestEntry& entry() const { return list->entry_of(ordinal); }
  [[nodiscard]] std::uint32_t file() const { return list->file_of(ordinal); }
};

/// is_readable: its owner may open the file to read. One that may not is synced while it is open.
[[nodiscard]] inline bool is_readable(const ManifestEntry& entry) noexcept {
  return (entry.mode & S_IRUSR) != 0;
}

/// PackFailure: what ended all packs, and at which file, by index on the wire.
struct PackFailure {
  std::uint32_t file = 0;
  FileFailure failure = FileFailure::none;
  int errno_value = 0;
};
/// PackRun: the records [first, first + count) have their names; `name_number` as in FileDone. With
/// a count of 0: the list's folders have mode and time. Files that were there and files that came
/// alternate in a tree that is resumed: a run has both.
struct PackRun {
  const PackList* list = nullptr;
  std::uint32_t first = 0, count = 0;
  unsigned name_number = 0;
  bool is_kept = false;  ///< FileOutcome::kept, all of them
};

/// PackBatch: what is committed at once.
struct PackBatch {
  std::vector<PackRecord> records;
  /// Lists whose files are all in place once those of this batch are, those of earlier chapters
  /// too: files that arrive later would change the times of folders.
  std::vector<const PackList*> finished;
  [[nodiscard]] bool is_empty() const noexcept { return records.empty() && finished.empty(); }
};

class PackCommit {
 public:
  /// options and stage outlive it.
  PackCommit(const PackOptions& options, const Stage& stage);
  ~PackCommit();
  PackCommit(const PackCommit&) = delete;
  PackCommit& operator=(const PackCommit&) = delete;

  /// start starts the thread. Error: there is none to be had.
  [[nodiscard]] Result<void> start();
  /// is_idle: the last batch is through. wait_idle blocks until then.
  [[nodiscard]] bool is_idle();
  void wait_idle();
  /// commit takes a batch, while it is idle.
  void commit(PackBatch batch);
  /// pop gives a run that is through; failure tells what ended the work: nothing is committed after
  /// it.
  [[nodiscard]] std::optional<PackRun> pop();
  [[nodiscard]] std::optional<PackFailure> failure();

 private:
  void run();
  [[nodiscard]] std::optional<PackFailure> work(PackBatch& batch, std::vector<PackRun>& runs);
  [[nodiscard]] std::optional<PackFailure> finish_folders(const PackBatch& batch);
  [[nodiscard]] std::optional<PackFailure> finish_folder(const PackRecord& record);
  [[nodiscard]] std::optional<PackFailure> sync_files(const std::vector<PackRecord>& records);
  [[nodiscard]] std::optional<PackFailure> name_files(std::vector<PackRecord>& records,
                                                      std::vector<PackRun>& runs);
  [[nodiscard]] std::optional<PackFailure> name_file(const PackRecord& record, unsigned& number);
  [[nodiscard]] std::optional<PackFailure> sync_folders(const PackBatch& batch);
  [[nodiscard]] std::optional<PackFailure> sync_all(std::uint32_t file) const;

  const PackOptions& options_;
  const Stage& stage_;
  FolderCache folders_;  // the thread's
  const bool has_syncfs_;

  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  PackBatch batch_;
  bool has_batch_ = false, is_stopping_ = false;
  std::deque<PackRun> runs_;
  std::optional<PackFailure> failure_;
  std::thread thread_;
};

}  // namespace onehop::file
