// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PackCommit: gives packed files their final names, a batch at a time, durably.
//
//   staged ─▶ sync of the batch ─▶ rename each, over nothing ─▶ sync of the folders ─▶ runs
//
// At any instant of a power cut a visible name has its whole content: nothing is renamed before the
// disk has it. Up to files_synced_singly_max files are synced each; above that one syncfs costs
// less than a sync per file, and it reports write errors (Linux 5.8). It works on a thread of its
// own, so that the file thread goes on with the next batch while the disk is busy.
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
#include "engine/file/part_file.hpp"
#include "engine/file/stage.hpp"

namespace onehop::file {

struct PackOptions {
  int root = -1;  ///< the destination; outlives all
  crypto::DigestKind digest_kind = crypto::DigestKind::xxh3;
  Durability durability = Durability::batch;
  mode_t umask_bits = 022;
  std::function<OnExist(std::uint32_t file)> policy;  ///< any thread
  /// mark records that the file behind `fd` is this session's, sync_marks makes that durable; the
  /// file thread calls both. 0 or errno. Only of files that may get another name: with the
  /// announced one a comparison finds them.
  std::function<int(std::uint32_t file, int fd)> mark;
  std::function<int()> sync_marks;
};

/// is_readable: its owner may open the file to read. One that may not is synced while it is open.
[[nodiscard]] inline bool is_readable(const ManifestEntry& entry) noexcept {
  return (entry.mode & S_IRUSR) != 0;
}

/// PackFailure: what ended the pack, and at which manifest index.
struct PackFailure {
  std::uint32_t file = 0;
  FileFailure failure = FileFailure::none;
  int errno_value = 0;
};
/// PackRun: the records [first, first + count) have their names; `name_number` as in FileDone.
struct PackRun {
  std::uint32_t first = 0, count = 0;
  unsigned name_number = 0;
};

class PackCommit {
 public:
  /// manifest, pack and stage outlive it.
  PackCommit(const Manifest& manifest, const Pack& pack, const PackOptions& options,
             const Stage& stage);
  ~PackCommit();
  PackCommit(const PackCommit&) = delete;
  PackCommit& operator=(const PackCommit&) = delete;

  /// start starts the thread. Error: there is none to be had.
  [[nodiscard]] Result<void> start();
  /// is_idle: the last batch is through. wait_idle blocks until then.
  [[nodiscard]] bool is_idle();
  void wait_idle();
  /// commit takes a batch of staged ordinals, while it is idle.
  void commit(std::vector<std::uint32_t> ordinals);
  /// pop gives a run that is through; failure tells what ended the work: nothing is committed after
  /// it.
  [[nodiscard]] std::optional<PackRun> pop();
  [[nodiscard]] std::optional<PackFailure> failure();

  /// finish_folders gives the packed folders their mode and time, the deepest first: files that
  /// arrive would change it. Call it once, when every file is in place. Syscalls: openat2, mkdirat,
  /// fchmod, futimens, syncfs.
  [[nodiscard]] std::optional<PackFailure> finish_folders();

 private:
  void run();
  [[nodiscard]] std::optional<PackFailure> work(std::vector<std::uint32_t>& ordinals,
                                                std::vector<PackRun>& runs);
  [[nodiscard]] std::optional<PackFailure> sync_files(const std::vector<std::uint32_t>& ordinals);
  [[nodiscard]] std::optional<PackFailure> name_file(std::uint32_t ordinal, unsigned& number);
  [[nodiscard]] std::optional<PackFailure> sync_folders(const std::vector<std::uint32_t>& ordinals);
  [[nodiscard]] std::optional<PackFailure> sync_all(std::uint32_t ordinal) const;
  [[nodiscard]] const ManifestEntry& entry_of(std::uint32_t ordinal) const {
    return manifest_.files[pack_.entries()[ordinal]];
  }
  [[nodiscard]] PackFailure failed(std::uint32_t ordinal, FileFailure failure,
                                   int errno_value) const {
    return {pack_.entries()[ordinal], failure, errno_value};
  }

  const Manifest& manifest_;
  const Pack& pack_;
  const PackOptions& options_;
  const Stage& stage_;
  FolderCache folders_;  // the thread's; finish_folders() runs when it is idle
  const bool has_syncfs_;

  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::vector<std::uint32_t> batch_;
  bool has_batch_ = false, is_stopping_ = false;
  std::deque<PackRun> runs_;
  std::optional<PackFailure> failure_;
  std::thread thread_;
};

}  // namespace onehop::file
