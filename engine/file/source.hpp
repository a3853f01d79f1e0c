// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Source: the sending half of file I/O: reads blocks in order, digests each, hands it over.
//
//   pool ─▶ submit read ─▶ [ reads in flight, in order ] ─▶ digest, tree ─▶ block ─▶ engine
//    ▲                                                        │ the peer has it: skipped
//    └──────────── block given back ◀── engine                └─▶ after a file's last block:
//                                                                 fence, root
//
// One file thread (FileThread) owns and calls it. It sleeps nowhere, and it waits for the disk only
// where the kind of I/O does. A file whose fence changed is a failure and gets no root.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/base/spsc_ring.hpp"
#include "engine/crypto/tree.hpp"
#include "engine/file/block_pool.hpp"
#include "engine/file/file_io.hpp"
#include "engine/file/file_worker.hpp"
#include "engine/file/journal.hpp"
#include "engine/file/pack_source.hpp"
#include "engine/file/read_ahead.hpp"
#include "engine/file/source_files.hpp"

namespace onehop::file {

/// The vectors are by file, in the order of the manifest.
struct SourceOptions {
  std::size_t slots = sender_slots;
  crypto::DigestKind digest_kind = crypto::DigestKind::xxh3;
  /// What the receiver says it has; empty: nothing.
  std::vector<std::vector<Claim>> claims;
  /// An unwanted file is neither read nor mentioned; empty: all are wanted.
  std::vector<bool> is_wanted;
  /// Of such a file only digests are handed over, as `skipped`; empty: none.
  std::vector<bool> is_compared;
  /// Of the wanted files, those that go in shared blocks; null: none.
  std::shared_ptr<const Pack> pack;
};

class Source final : public FileWorker {
 public:
  Source(SourceFiles files, SourceOptions options, std::unique_ptr<FileIo> io);
  /// The kernel may still write into the pool's memory until nothing is in flight.
  ~Source() override { io_->wait_all(); }

  /// turn: see FileWorker. Syscalls: those of FileIo; per file fstat, pread, posix_fadvise, open.
  std::size_t turn(Instant now, SpscRing<BlockRef>& to_engine,
                   SpscRing<BlockRef>& from_engine) override;

  /// is_over: everything was handed over, or it failed or was aborted. turn() still takes buffers.
  [[nodiscard]] bool is_over() const noexcept override { return is_over_ && outbox_.empty(); }
  [[nodiscard]] Nanos nap_max() const noexcept override { return nap_max_reading; }
  [[nodiscard]] const char* thread_name() const noexcept override { return "onehop-read"; }
  [[nodiscard]] std::string_view io_name() const noexcept override { return io_->name(); }

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
  [[nodiscard]] std::size_t data_waiting(const SpscRing<BlockRef>& to_engine);
  [[nodiscard]] bool open_next_file();
  [[nodiscard]] bool pack_next(std::size_t& count);
  void skip_unwanted();
  void finish_block(const Read& read);
  [[nodiscard]] bool check_fence(std::uint32_t file);
  [[nodiscard]] bool has_file_ended(std::uint32_t file);
  [[nodiscard]] bool is_held_by_peer(const BlockRef& block) const noexcept;
  void fail(std::uint32_t file, FileFailure failure, int errno_value);

  SourceFiles files_;
  SourceOptions options_;
  std::unique_ptr<FileIo> io_;
  BlockPool pool_;
  PackSource pack_;
  ReadAhead read_ahead_;
  // In file order; the front is handed over first. A read's tag is first_tag_ + its place here.
  std::deque<Read> reads_;
  std::uint64_t first_tag_ = 0;
  // What the ring had no room for. Bounded by the pool, and one message per file in it.
  std::deque<BlockRef> outbox_;
  std::deque<bool> in_ring_;     // of each message there: has it data
  std::uint32_t read_file_ = 0;  // being read
  std::uint64_t read_block_ = 0;
  bool is_file_open_ = false;
  crypto::DigestTree tree_;  // of the file being handed over
  bool is_over_ = false;
};

}  // namespace onehop::file
