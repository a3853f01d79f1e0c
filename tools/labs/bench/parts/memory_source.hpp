// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// MemorySource: a Source without a disk. The blocks of each file are the pool's buffers, filled
// with incompressible bytes once; nothing is read. It stands for the sending program when the path,
// and not the disk, is what is measured.
//
//   pool ─▶ (digest, tree) ─▶ block ─▶ engine ─▶ given back ─▶ pool
//                   └─▶ root ─▶ session
//
// Two blocks that use one buffer have the same bytes: what arrives is verified by digest, not by
// place. Owned and called by one file thread.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "engine/crypto/tree.hpp"
#include "engine/disk/thread/block_pool.hpp"
#include "engine/disk/thread/file_worker.hpp"
#include "engine/list/manifest.hpp"
#include "engine/source/read_ahead.hpp"

namespace onehop::bench {

struct MemorySourceOptions {
  std::size_t slots = disk::sender_slots;
  /// None: digests and roots are zero
  std::optional<crypto::DigestKind> digest_kind = crypto::DigestKind::xxh3;
  std::uint64_t seed = 1;  ///< of the bytes
};

class MemorySource final : public disk::FileWorker {
 public:
  MemorySource(list::Manifest manifest, const MemorySourceOptions& options);

  std::size_t turn(Instant now, FileRings& rings) override;
  [[nodiscard]] bool is_over() const noexcept {
    return is_over_ && outbox_.empty() && told_.empty();
  }
  [[nodiscard]] Nanos nap_max() const noexcept override { return disk::nap_max_reading; }
  [[nodiscard]] const char* thread_name() const noexcept override { return "onehop-read"; }
  [[nodiscard]] std::string_view io_name() const noexcept override { return "memory"; }

 private:
  std::size_t make_blocks(std::size_t waiting);
  void make_block(std::uint32_t slot);
  std::size_t flush(FileRings& rings);

  list::Manifest manifest_;
  MemorySourceOptions options_;
  disk::BlockPool pool_;
  source::ReadAhead read_ahead_;
  std::deque<BlockRef> outbox_;
  std::deque<FileEvent> told_;
  std::uint32_t file_ = 0;
  std::uint64_t block_ = 0;
  std::optional<crypto::DigestTree> tree_;  // of file_
  std::vector<bool> is_filled_;  // by slot; a buffer gets its bytes when it is first lent
  bool is_over_ = false;
};

}  // namespace onehop::bench
