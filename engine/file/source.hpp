// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Source: the sending half of file I/O. It reads blocks in order, digests each before anyone else sees it, and hands it
// to the engine.
//
//   pool ─▶ submit read ─▶ [ reads in flight, in order ] ─▶ digest, tree ─▶ BlockRef{block} ─▶ engine
//     ▲                                                        │ the peer has it: BlockRef{skipped}
//     └──────────── BlockRef{block} given back ◀── engine ◀────┴─▶ after a file's last block: fence, BlockRef{root}
//
// Owned and called by one file thread (FileThread); it naps nowhere, and it waits for the disk only where the I/O kind
// does. A file whose fence changed is a failure, never a root: the peer then keeps no such file under its name.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/base/spsc_ring.hpp"
#include "engine/crypto/tree.hpp"
#include "engine/file/block_pool.hpp"
#include "engine/file/file_io.hpp"
#include "engine/file/file_worker.hpp"
#include "engine/file/journal.hpp"
#include "engine/file/read_ahead.hpp"
#include "engine/file/source_files.hpp"

namespace onehop::file {

struct SourceOptions {
  std::size_t slots = sender_slots;
  crypto::DigestKind digest_kind = crypto::DigestKind::xxh3;
  std::vector<std::vector<Claim>> claims;  ///< by file, what the receiver says it has; empty: nothing
  std::vector<bool> is_wanted;             ///< by file; empty: all. An unwanted file is neither read nor mentioned
  std::vector<bool> is_compared;           ///< by file; empty: none. Of such a file only digests are handed over, as `skipped`
};

class Source final : public FileWorker {
 public:
  Source(SourceFiles files, SourceOptions options, std::unique_ptr<FileIo> io);
  ~Source() override;

  /// turn does what can be done now and returns how many blocks and messages moved; 0: nap.
  /// Syscalls: those of FileIo; per file fstat twice, pread at its end, at most one open, posix_fadvise.
  std::size_t turn(Instant now, SpscRing<BlockRef>& to_engine, SpscRing<BlockRef>& from_engine) override;

  /// is_over: everything was handed over, or it failed or was aborted; turn() still takes buffers back.
  [[nodiscard]] bool is_over() const noexcept override { return is_over_ && outbox_.empty(); }
  [[nodiscard]] Nanos nap_max() const noexcept override { return nap_max_reading; }
  [[nodiscard]] const char* thread_name() const noexcept override { return "onehop-read"; }
  [[nodiscard]] std::string_view io_name() const noexcept override { return name(io_->kind()); }
  [[nodiscard]] std::uint64_t io_syscalls_total() const noexcept override { return io_->totals().syscalls; }
  [[nodiscard]] const FileIo& io() const noexcept { return *io_; }
  [[nodiscard]] std::uint64_t bytes_read_total() const noexcept { return bytes_read_total_; }

 private:
  struct Read {
    BlockRef block;
    bool is_done = false;
    std::int64_t result = 0;
  };

  std::size_t take_messages(SpscRing<BlockRef>& from_engine);
  std::size_t flush(SpscRing<BlockRef>& to_engine);
  /// waiting: what the engine has not taken from the ring.
  std::size_t submit_reads(std::size_t waiting);
  std::size_t hand_over();
  void collect_reads();
  [[nodiscard]] bool open_next_file();
  void finish_block(const Read& read);
  [[nodiscard]] bool check_fence(std::uint32_t file);
  [[nodiscard]] bool check_end(std::uint32_t file);
  [[nodiscard]] bool is_held_by_peer(const BlockRef& block) const noexcept;
  void fail(std::uint32_t file, FileFailure failure, int errno_value);
  void stop() noexcept;

  SourceFiles files_;
  SourceOptions options_;
  std::unique_ptr<FileIo> io_;
  BlockPool pool_;
  ReadAhead read_ahead_;
  std::deque<Read> reads_;        // in file order; the front is handed over first. Place in it + first_tag_ = tag
  std::uint64_t first_tag_ = 0;
  std::deque<BlockRef> outbox_;   // what the ring had no room for; bounded by the pool and one message per file in it
  std::uint32_t read_file_ = 0;   // being read
  std::uint64_t read_block_ = 0;
  bool is_file_open_ = false;
  crypto::DigestTree tree_;       // of the file being handed over
  std::uint64_t bytes_read_total_ = 0;
  bool is_over_ = false;
};

}  // namespace onehop::file
