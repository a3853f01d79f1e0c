// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// MemorySink: a Sink without a disk. Blocks are digested, compared with what was announced, and
// forgotten; nothing is written. It stands for the receiving program when the path, and not the
// disk, is what is measured.
//
//   engine ──▶ block ────────┬─▶ digest of the bytes ─▶ announced == own? ─▶ buffer back
//   session ─▶ digest, root ─┘   └─▶ the last leaf and the root are there: FileFinished
//
// It makes nothing durable, resumes nothing, and takes no place in a path: it is for benchmarks and
// tests only. Owned and called by one file thread.
#pragma once

#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/crypto/tree.hpp"
#include "engine/disk/thread/block_pool.hpp"
#include "engine/disk/thread/file_worker.hpp"
#include "engine/list/manifest.hpp"

namespace onehop::bench {

struct MemorySinkOptions {
  std::size_t slots = disk::receiver_slots;
  /// None: nothing is digested or compared
  std::optional<crypto::DigestKind> digest_kind = crypto::DigestKind::xxh3;
};

class MemorySink final : public disk::FileWorker {
 public:
  MemorySink(list::Manifest manifest, const MemorySinkOptions& options);

  std::size_t turn(Instant now, FileRings& rings) override;
  [[nodiscard]] bool is_over() const noexcept {
    return (has_failed_ || files_left_ == 0) && outbox_.empty() && told_.empty();
  }
  [[nodiscard]] Nanos nap_max() const noexcept override {
    return blocks_left_ <= near_end_blocks ? disk::nap_max_at_end : disk::nap_max_writing;
  }
  [[nodiscard]] const char* thread_name() const noexcept override { return "onehop-write"; }
  [[nodiscard]] std::string_view io_name() const noexcept override { return "memory"; }

 private:
  /// A block of which something is known, until the tree has it.
  struct Entry {
    Digest own{}, announced{};
    bool has_own = false, has_announced = false;
  };
  struct File {
    std::optional<crypto::DigestTree> tree;
    std::unordered_map<std::uint64_t, Entry> entries;
    std::uint64_t next_leaf = 0;
    Digest root{};
    bool has_root = false;
  };
  static constexpr std::uint64_t near_end_blocks = 8;  // as Sink has it

  void take(const BlockRef& block);
  void take(const AnnouncedDigest& announced);
  void take(const AnnouncedRoot& announced);
  void take(const EndAtCheckpoint&) {}
  void take(const HeldBlock&) {}  // a sender is told of them
  void take(const HeldEnd&) {}
  void settle(std::uint32_t file, std::uint64_t block);
  void finish_if_complete(std::uint32_t file);
  void fail(std::uint32_t file, FileFailure failure);

  list::Manifest manifest_;
  MemorySinkOptions options_;
  disk::BlockPool pool_;
  std::vector<File> files_;
  std::deque<BlockRef> outbox_;
  std::deque<FileEvent> told_;
  std::size_t files_left_;
  std::uint64_t blocks_left_ = 0;
  bool has_lent_ = false, has_failed_ = false;
};

}  // namespace onehop::bench
