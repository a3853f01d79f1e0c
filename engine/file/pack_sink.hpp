// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PackSink: the receiving half of a pack. It cuts blocks into files, verifies each file by the root
// that came with it, and commits them in batches.
//
//   block ─▶ records ─▶ own root = the one behind it? ─▶ Stage ─▶ batch ─▶ PackCommit ─▶ runs
//
// A record that lies in two blocks is written as they come, in any order, and read back for its
// root. The Sink owns it; its file thread calls it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/base/units.hpp"
#include "engine/crypto/tree.hpp"
#include "engine/file/pack_commit.hpp"

namespace onehop::file {

class PackSink {
 public:
  /// manifest outlives it.
  PackSink(const Manifest& manifest, Pack pack, PackOptions options);

  [[nodiscard]] const Pack& pack() const noexcept { return pack_; }

  /// take writes what is in the block. The buffer is free when it returns. Syscalls: openat2,
  /// pwrite, futimens; pread for records in two blocks.
  [[nodiscard]] std::optional<PackFailure> take(Instant now, const BlockRef& block);
  /// on_root: the root over all records, in order, as the sender has it. It comes when all of them
  /// were sent.
  [[nodiscard]] std::optional<PackFailure> on_root(const Digest& root);
  /// turn hands a batch that is due to the commit thread; it waits for the disk where two batches
  /// are not through yet. What the thread failed at.
  [[nodiscard]] std::optional<PackFailure> turn(Instant now);
  [[nodiscard]] std::optional<PackRun> pop() { return commit_.pop(); }
  [[nodiscard]] std::optional<PackFailure> finish_folders() { return commit_.finish_folders(); }

  /// commit_all gives every whole file its name, and returns when that is durable. close does so,
  /// and removes what is not whole. Without it all stays as a kill would leave it.
  [[nodiscard]] std::optional<PackFailure> commit_all();
  void close();

 private:
  /// Of a record of which one block has come.
  struct Half {
    Fd file;
    Digest root{};
    std::uint32_t bytes = 0;  ///< of the record
  };
  [[nodiscard]] std::optional<PackFailure> open_stage();
  [[nodiscard]] std::optional<PackFailure> take_whole(std::uint32_t ordinal,
                                                      std::span<const std::byte> record);
  [[nodiscard]] std::optional<PackFailure> take_half(std::uint32_t ordinal, const PackPlace& place,
                                                     std::uint64_t from,
                                                     std::span<const std::byte> bytes);
  [[nodiscard]] std::optional<PackFailure> end_file(std::uint32_t ordinal, const Fd& file);
  [[nodiscard]] std::optional<PackFailure> check(std::uint32_t ordinal,
                                                 std::span<const std::byte> content,
                                                 std::span<const std::byte> root);
  void add_leaf(std::uint32_t ordinal, const Digest& root);
  [[nodiscard]] std::optional<PackFailure> check_all();
  [[nodiscard]] std::optional<PackFailure> hand_over();
  [[nodiscard]] bool is_full() const noexcept;
  [[nodiscard]] PackFailure failed(std::uint32_t ordinal, FileFailure failure,
                                   int errno_value) const {
    return {pack_.entries()[ordinal], failure, errno_value};
  }
  [[nodiscard]] const ManifestEntry& entry_of(std::uint32_t ordinal) const {
    return manifest_.files[pack_.entries()[ordinal]];
  }

  const Manifest& manifest_;
  const Pack pack_;
  const PackOptions options_;
  Stage stage_;
  PackCommit commit_;
  std::unordered_map<std::uint32_t, Half> halves_;  // at most one per block
  std::vector<std::byte> scratch_;

  std::vector<std::uint32_t> batch_;
  std::uint64_t batch_bytes_ = 0;
  Instant batch_at_{};
  std::size_t whole_ = 0;  // records that were verified

  // The root over all records, in order; roots that came early wait.
  crypto::DigestTree tree_;
  std::unordered_map<std::uint32_t, Digest> early_;
  std::optional<Digest> root_;
  bool has_started_ = false;
};

}  // namespace onehop::file
