// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PackSource: the sending half of a volume's pack. It reads small files into blocks, one behind
// the other, each with its root behind it.
//
//   add(entry) ─▶ open, read, fence ─▶ [ block under way | next ] ─▶ the Source's outbox ─▶ engine
//
// The Source owns it; its file thread calls it. It waits for the disk: small files that are read at
// once, in the order of the disk, cost fewer calls than files that are read ahead.
#pragma once

#include <cstdint>
#include <deque>

#include "engine/base/file_message.hpp"
#include "engine/base/zeroed_array.hpp"
#include "engine/crypto/content_mac.hpp"
#include "engine/crypto/tree.hpp"
#include "engine/disk/thread/block_pool.hpp"
#include "engine/list/pack.hpp"
#include "engine/list/source_opener.hpp"
#include "engine/source/source_volume.hpp"

namespace onehop::source {

class PackSource {
 public:
  /// Shared is what all packs of a session have in common.
  struct Shared {
    disk::BlockPool& pool;
    std::deque<BlockRef>& outbox;  ///< for blocks that are full, and the last one
    const crypto::DigestKind kind;
    crypto::ContentMac& mac;
    /// Of a file in halves, and a byte behind it. Its pages are touched where there is one.
    ZeroedArray<std::byte> scratch{scratch_bytes};
    static constexpr std::size_t scratch_bytes = list::packed_bytes_max + 1;
    list::SourceOpener opener{};
  };
  /// volume and shared outlive it.
  PackSource(const SourceVolume& volume, Shared& shared);

  /// is_next: `entry` is the next that add() takes.
  [[nodiscard]] bool is_next(std::size_t entry) const noexcept {
    return pack_ != nullptr && next_ < pack_->entries().size() && pack_->entries()[next_] == entry;
  }
  /// has_room: two more blocks can be had. add() may need them.
  [[nodiscard]] bool has_room() const noexcept { return shared_.pool.free_slots() >= 2; }

  struct Failure {
    FileFailure failure = FileFailure::none;
    int errno_value = 0;
  };
  /// add reads the next record. A file that is not what its fence says is a failure, and nothing of
  /// it is read; one that is not so afterwards is not sent. Syscalls: openat2, fstat twice, pread,
  /// close; of a symbolic link readlinkat, fstatat.
  [[nodiscard]] Failure add();
  /// is_over: every record was added. root is then that over all of them.
  [[nodiscard]] bool is_over() const noexcept { return next_ == pack_->entries().size(); }
  [[nodiscard]] Digest root() const noexcept { return tree_.root(); }

 private:
  [[nodiscard]] Failure read(std::uint32_t index, std::span<std::byte> out);
  [[nodiscard]] Failure read_symlink(std::uint32_t index, std::span<std::byte> out);
  void append(std::span<const std::byte> bytes);
  [[nodiscard]] std::span<std::byte> room();
  void advance(std::size_t bytes);

  const list::SourceFiles& files_;
  const list::Pack* const pack_;
  list::PackRoots* const roots_;
  const std::uint32_t file_;  // of the pack, on the wire
  Shared& shared_;
  std::size_t next_ = 0;  // ordinal
  BlockRef block_;        // under way; data is null: none
  crypto::DigestTree tree_;
};

}  // namespace onehop::source
