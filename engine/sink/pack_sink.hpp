// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PackSink: the receiving half of a volume's pack. It cuts blocks into files, verifies each file
// by the root that came with it, and gives it to the session's batch.
//
//   block ─▶ records ─▶ own root = the one behind it? ─▶ Stage ─▶ PackCommit ─▶ runs
//
// A record that lies in two blocks waits in memory for the second one, whichever that is. The Sink
// owns it; its file thread calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "engine/crypto/tree.hpp"
#include "engine/disk/thread/block_pool.hpp"
#include "engine/sink/pack_commit.hpp"

namespace onehop::sink {

class PackSink {
 public:
  /// Both outlive it.
  PackSink(SinkVolume& list, PackCommit& commit);
  PackSink(const PackSink&) = delete;
  PackSink& operator=(const PackSink&) = delete;

  [[nodiscard]] bool has_folders() const noexcept { return has_folders_; }

  /// take writes what is in the block. The buffer is free when it returns. Syscalls: openat2,
  /// pwrite, futimens; of a symbolic link symlinkat, openat2, utimensat.
  [[nodiscard]] MaybeFailure take(const BlockRef& block);
  /// on_root: the root over all records, in order, as the sender has it. It comes when all of them
  /// were sent.
  [[nodiscard]] MaybeFailure on_root(const Digest& root);
  /// is_verified: every record came, and the root over them is the sender's.
  [[nodiscard]] bool is_verified() const noexcept { return is_verified_; }

 private:
  /// PackCommit::halves() at once. A sender starts at most as many blocks as the Sink has buffers,
  /// in order, and each has two ends. Fewer: an honest one fails. More: another takes more memory.
  static constexpr std::size_t halves_max = 2 * disk::receiver_slots + 1;
  [[nodiscard]] MaybeFailure take_whole(std::uint32_t ordinal, std::span<const std::byte> record);
  [[nodiscard]] MaybeFailure take_half(std::uint32_t ordinal, const list::PackPlace& place,
                                       std::uint64_t from, std::span<const std::byte> bytes);
  [[nodiscard]] MaybeFailure end_file(std::uint32_t ordinal, const Fd& file);
  [[nodiscard]] MaybeFailure end_symlink(std::uint32_t ordinal, std::span<const std::byte> target);
  [[nodiscard]] MaybeFailure compare(std::uint32_t ordinal, std::span<const std::byte> tag);
  void add_leaf(std::uint32_t ordinal, const Digest& leaf, const Digest& root);
  [[nodiscard]] MaybeFailure check_all();
  [[nodiscard]] PackFailure failed(std::uint32_t ordinal, FileFailure failure,
                                   int errno_value) const {
    return {list_.packed_file(ordinal), failure, errno_value};
  }

  SinkVolume& list_;
  PackCommit& commit_;
  bool has_folders_ = false;
  std::size_t whole_ = 0;  // records that were verified

  // The root over all records, in order; roots that came early wait.
  crypto::DigestTree tree_;
  std::unordered_map<std::uint32_t, Digest> early_;
  std::optional<Digest> root_;
  bool is_verified_ = false;
};

}  // namespace onehop::sink
