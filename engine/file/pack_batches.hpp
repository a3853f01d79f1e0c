// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PackBatches: what all packs of a session share at the receiving end: the stage, the thread that
// commits, and the batch that gathers for it from whichever chapter is under way.
//
//   PackSink of a chapter ─▶ Stage, add() ─▶ [ batch ] ─▶ PackCommit ─▶ pop() ─▶ Sink
//
// The Sink owns it; its file thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/units.hpp"
#include "engine/file/pack_commit.hpp"

namespace onehop::file {

class PackBatches {
 public:
  explicit PackBatches(const PackOptions& options) : options_{options}, commit_{options_, stage_} {}

  /// open makes the stage and starts the thread, once. 0 or errno.
  [[nodiscard]] int open();
  [[nodiscard]] const Stage& stage() const noexcept { return stage_; }
  [[nodiscard]] const PackOptions& options() const noexcept { return options_; }
  /// scratch holds a packed file.
  [[nodiscard]] std::span<std::byte> scratch() noexcept { return scratch_; }

  /// add takes a record whose file is whole, verified and staged, or a folder.
  void add(Instant now, const PackRecord& record);
  /// finish gives the list's folders mode and time, behind all that was added; what a later chapter
  /// brings must not be in them.
  void finish(const PackList& list);
  /// turn hands over what is due; it waits for the disk where two full batches are not through yet.
  /// `is_all`: no record of the chapters that are here is missing; more may come only when these
  /// have ended. What the thread failed at. Syscalls: fdatasync.
  [[nodiscard]] std::optional<PackFailure> turn(Instant now, bool is_all);
  [[nodiscard]] std::optional<PackRun> pop() { return commit_.pop(); }

  /// commit_all gives every whole file its name, and returns when that is durable. close does so,
  /// and removes what is not whole. Without it all stays as a kill would leave it.
  [[nodiscard]] std::optional<PackFailure> commit_all();
  void close();

 private:
  [[nodiscard]] std::optional<PackFailure> hand_over();
  [[nodiscard]] bool is_full() const noexcept;

  const PackOptions options_;
  Stage stage_;
  std::vector<std::byte> scratch_;

  PackBatch batch_;
  std::uint64_t batch_bytes_ = 0;
  Instant batch_at_{};
  bool has_started_ = false;
  PackCommit commit_;  // the last: its thread ends first
};

}  // namespace onehop::file
