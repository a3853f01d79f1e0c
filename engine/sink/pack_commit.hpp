// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PackCommit: gives packed files their final names, a batch at a time, durably. All packs of a
// session share it at the receiving end, with the stage and the batch that gathers.
//
//   PackSink of a volume ─▶ Stage, add() ─▶ [ batch ] ─▶ sync of the batch
//     ─▶ rename each, over nothing ─▶ (a volume's last: mode and time of its folders)
//     ─▶ sync of the folders ─▶ pop()
//
// At any instant of a power cut a visible name has its whole content: nothing is renamed before the
// disk has it. Up to synced_singly_max files are synced each; above that one syncfs costs less than
// a sync per file, and it reports write errors (Linux 5.8). It works on a thread of its own, so
// that the file thread goes on while the disk is busy. The Sink owns it; its file thread calls it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <semaphore>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/base/file_message.hpp"
#include "engine/base/units.hpp"
#include "engine/disk/folder_cache.hpp"
#include "engine/disk/stage.hpp"
#include "engine/sink/sink_volume.hpp"

namespace onehop::sink {

/// Each `list` outlives every record of it that is under way.
struct PackRecord {
  const SinkVolume* list = nullptr;
  std::uint32_t ordinal = 0;
  FileOutcome outcome = FileOutcome::received;  ///< another: nothing is to be done
  unsigned name_number = 0;                     ///< of one that was there
  int fault = 0;  ///< of FileOutcome::name_refused: an errno, or a SymlinkFault
  [[nodiscard]] const list::ManifestEntry& entry() const { return list->packed_entry(ordinal); }
  [[nodiscard]] std::uint32_t index() const { return list->pack().entries()[ordinal]; }
  [[nodiscard]] std::uint32_t file() const { return list->packed_file(ordinal); }
};

/// is_readable: its owner may open the file to read. One that may not is synced while it is open.
[[nodiscard]] inline bool is_readable(const list::ManifestEntry& entry,
                                      mode_t umask_bits) noexcept {
  return (entry.mode & ~umask_bits & S_IRUSR) != 0;
}

/// PackFailure: what ended all packs, and at which file, by index on the wire.
struct PackFailure {
  std::uint32_t file = 0;
  FileFailure failure = FileFailure::none;
  int errno_value = 0;
};
using MaybeFailure = std::optional<PackFailure>;
/// PackRun: the records [first, first + count) have their names; `name_number` as in FileDone. With
/// a count of 0: the list's folders have mode and time. Files that were there and files that came
/// alternate in a tree that is resumed: a run has both.
struct PackRun {
  const SinkVolume* list = nullptr;
  std::uint32_t first = 0, count = 0;
  unsigned name_number = 0;
  bool is_kept = false;  ///< FileOutcome::kept, all of them
  int fault = 0;         ///< not 0: FileOutcome::name_refused, all of them, for this
};

/// PackBatch: what is committed at once.
struct PackBatch {
  std::vector<PackRecord> records;
  /// Lists whose files are all in place once those of this batch are, those of earlier volumes
  /// too: files that arrive later would change the times of folders.
  std::vector<const SinkVolume*> finished;
  std::uint64_t bytes = 0;       ///< of files that were received
  std::optional<Instant> since;  ///< of the first turn() that found it
  [[nodiscard]] bool is_empty() const noexcept { return records.empty() && finished.empty(); }
};

/// PackHalf: a record of which one block has come.
struct PackHalf {
  std::vector<std::byte> record;
  std::size_t bytes = 0;  ///< that have come
};

class PackCommit {
 public:
  /// destination outlives it.
  explicit PackCommit(Destination& destination);
  ~PackCommit();
  PackCommit(const PackCommit&) = delete;
  PackCommit& operator=(const PackCommit&) = delete;

  /// open makes the stage and starts the thread, once. 0 or errno.
  [[nodiscard]] int open();
  [[nodiscard]] const disk::Stage& stage() const noexcept { return stage_; }
  [[nodiscard]] Destination& destination() const noexcept { return destination_; }
  /// halves are by the record's file. PackSink bounds them.
  [[nodiscard]] std::unordered_map<std::uint32_t, PackHalf>& halves() noexcept { return halves_; }

  /// add takes a record whose file is whole, verified and staged, or a folder.
  void add(const PackRecord& record);
  /// finish gives the list's folders mode and time, behind all that was added; what a later volume
  /// brings must not be in them.
  void finish(const SinkVolume& list) { batch_.finished.push_back(&list); }
  /// turn hands over what is due; it waits for the disk where two full batches are not through yet.
  /// `is_all`: no record of the volumes that are here is missing; more may come only when these
  /// have ended. What the thread failed at: nothing is committed after it. Syscalls: fdatasync.
  [[nodiscard]] MaybeFailure turn(Instant now, bool is_all);
  /// pop gives a run that is through.
  [[nodiscard]] std::optional<PackRun> pop();

  /// commit_all gives every whole file its name, and returns when that is durable. close does so,
  /// and removes what is not whole. Without it all stays as a kill would leave it.
  [[nodiscard]] MaybeFailure commit_all();
  void close();

 private:
  [[nodiscard]] bool is_full() const noexcept;
  [[nodiscard]] MaybeFailure hand_over();
  bool collect(bool is_waiting);

  // --- in the thread
  /// Done: what became of a batch.
  struct Done {
    std::vector<PackRun> runs;
    MaybeFailure failure;
  };
  void run(const std::stop_token& stop);
  [[nodiscard]] Done work(PackBatch& batch);
  [[nodiscard]] MaybeFailure finish_folders(const PackBatch& batch);
  [[nodiscard]] MaybeFailure finish_folder(const PackRecord& record);
  [[nodiscard]] MaybeFailure sync_files(const std::vector<PackRecord>& records);
  [[nodiscard]] MaybeFailure name_files(std::vector<PackRecord>& records,
                                        std::vector<PackRun>& runs);
  [[nodiscard]] MaybeFailure name_file(PackRecord& record, unsigned& number);
  [[nodiscard]] bool refuse(PackRecord& record, const PackFailure& failure) const;
  void bring_over(const PackRecord& record);
  [[nodiscard]] MaybeFailure name_symlink(PackRecord& record, unsigned& number);
  [[nodiscard]] MaybeFailure give_staged_name(const PackRecord& record, int folder,
                                              unsigned& number);
  [[nodiscard]] MaybeFailure sync_folders(const PackBatch& batch);
  [[nodiscard]] MaybeFailure sync_all(std::uint32_t file) const;

  Destination& destination_;
  const bool has_syncfs_;
  disk::Stage stage_;
  mode_t mode_made_ = 0;  // of a new folder
  std::unordered_map<std::uint32_t, PackHalf> halves_;
  PackBatch batch_;  // that gathers
  std::deque<PackRun> runs_;
  MaybeFailure failure_;
  bool is_under_way_ = false;  // a batch was handed over, and done_ was not collected
  std::binary_semaphore has_batch_{0}, is_through_{0};
  // The thread's, from the one semaphore to the other.
  PackBatch handed_over_;
  Done done_;
  disk::FolderCache folders_;
  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace onehop::sink
