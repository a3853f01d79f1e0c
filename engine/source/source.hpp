// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Source: the sending half of file I/O: reads blocks, digests each, hands it over. Of a file that
// the receiver has a part of, what is new goes first (read_order.hpp).
//
//   add() ─▶ volumes ─▶ the one that is read ─▶ files
//   pool ─▶ submit read ─▶ [ reads in flight, in order ] ─▶ digest, tree ─▶ block ─▶ engine
//    ▲                              session ─▶ tags ─────────▶ │ the peer has it: skipped, by tag
//    │                                                        │ it lies in a hole: not read, hole
//    └──────────── block given back ◀── engine                └─▶ after a file's last block:
//                                                                 fence, root ─▶ session
//
// One file thread (FileThread) owns and calls it; volumes come from any thread. It sleeps nowhere,
// and it waits for the disk only where the kind of I/O does. A file whose fence changed is a
// failure and gets no root. Of a volume that was handed over it keeps nothing.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "engine/crypto/content_mac.hpp"
#include "engine/crypto/tree.hpp"
#include "engine/disk/extents.hpp"
#include "engine/disk/file_io.hpp"
#include "engine/disk/page_cache.hpp"
#include "engine/disk/thread/block_pool.hpp"
#include "engine/disk/thread/file_worker.hpp"
#include "engine/source/pack_source.hpp"
#include "engine/source/read_ahead.hpp"
#include "engine/source/read_order.hpp"
#include "engine/source/source_volume.hpp"

namespace onehop::source {

struct SourceOptions {
  std::size_t slots = disk::sender_slots;
  crypto::DigestKind digest_kind = crypto::DigestKind::xxh3;
  crypto::CompareKey compare_key{};  ///< of this offer: by it the receiver said what it has
  disk::DirectIo direct_io = disk::DirectIo::automatic;
};

class Source final : public disk::FileWorker {
 public:
  Source(const SourceOptions& options, std::unique_ptr<disk::FileIo> io);
  /// The kernel may still write into the pool's memory until nothing is in flight.
  ~Source() override { io_->wait_all(); }

  /// add hands over the next volume, in order of the indices. Any thread, until is_last was added.
  void add(SourceVolume volume);

  /// turn: see FileWorker. Without a volume it moves nothing. Syscalls: those of FileIo; per file
  /// fstat, pread, posix_fadvise, openat2; of a large one those of PageCache; of a file with holes
  /// lseek.
  std::size_t turn(Instant now, FileRings& rings) override;

  /// is_over: everything was handed over, or it failed. turn() still takes buffers.
  [[nodiscard]] bool is_over() const noexcept {
    return is_over_ && outbox_.empty() && told_.empty();
  }
  /// A nap that ends late holds up the volume that has come, and all behind it.
  [[nodiscard]] Nanos nap_max() const noexcept override {
    return is_waiting_ ? disk::nap_max_at_end : disk::nap_max_reading;
  }
  [[nodiscard]] const char* thread_name() const noexcept override { return "onehop-read"; }
  [[nodiscard]] std::string_view io_name() const noexcept override { return io_->name(); }
  [[nodiscard]] std::string cache_text() const override { return cache_.text(); }

 private:
  struct Read {
    BlockRef block;
    std::optional<Digest> tag{};  // of the peer's block
    disk::CacheWay way{};
    std::size_t blocks = 1;  ///< of the first of an operation: those that it reads
    bool is_done = false;
    std::int64_t result = 0;
  };
  /// Begun: a file of which something was handed over, but not all.
  struct Begun {
    crypto::DigestTree tree;
    std::uint64_t left = 0;  // blocks
  };
  /// Tags of a file, as the peer tells them.
  struct Tags {
    std::deque<Claim> told;
    bool is_over = false;
  };

  struct Reading {
    Reading(SourceVolume given, PackSource::Shared& shared)
        : list{std::move(given)}, pack{list, shared}, order{list} {}
    SourceVolume list;
    PackSource pack;
    ReadOrder order;
    bool is_read = false;
  };

  std::size_t flush(FileRings& rings);
  /// waiting: what the engine has not taken from the ring.
  std::size_t submit_reads(std::size_t waiting);
  std::size_t hand_over();
  void collect_reads();
  [[nodiscard]] std::size_t data_waiting(const SpscRing<BlockRef>& to_engine);
  [[nodiscard]] bool take_volume();
  [[nodiscard]] bool find_next_piece();
  void take(const FileCommand& command);
  [[nodiscard]] bool is_tag_known(std::uint64_t block);
  [[nodiscard]] std::optional<Digest> take_tag(std::uint64_t block);
  [[nodiscard]] bool open_next_file();
  [[nodiscard]] bool pack_next(std::size_t& count);
  [[nodiscard]] bool submit_hole();
  [[nodiscard]] std::size_t submit_read();
  void pass_blocks(std::uint64_t count);
  void end_if_last();
  void drop_volumes();
  [[nodiscard]] SourceVolume& volume_of(std::uint32_t file) const;
  [[nodiscard]] list::SourceFile& source_file(std::uint32_t file) const;
  [[nodiscard]] std::uint64_t size_of(std::uint32_t file) const;
  [[nodiscard]] std::uint32_t next_file() const;
  [[nodiscard]] std::int64_t bytes_read(Read& read);
  void finish_block(Read read);
  void finish_hole(const Read& read);
  [[nodiscard]] Begun& begun(std::uint32_t file);
  void end_file(std::uint32_t file);
  [[nodiscard]] bool check_fence(std::uint32_t file);
  [[nodiscard]] bool has_file_ended(std::uint32_t file);
  [[nodiscard]] std::optional<Digest> tag_if_held(const BlockRef& block,
                                                  const std::optional<Digest>& tag);
  void fail(std::uint32_t file, FileFailure failure, int errno_value);

  const SourceOptions options_;
  std::unique_ptr<disk::FileIo> io_;
  disk::BlockPool pool_;
  disk::PageCache cache_;
  crypto::ContentMac mac_;
  PackSource::Shared pack_shared_;
  ReadAhead read_ahead_;
  std::mutex mutex_;                // of added_
  std::deque<SourceVolume> added_;  // not looked at yet
  // Those of which something is to be handed over; the last one is being read.
  std::deque<std::unique_ptr<Reading>> volumes_;
  // The front is handed over first. A read's tag is first_tag_ + its place here.
  std::deque<Read> reads_;
  std::uint64_t first_tag_ = 0;
  // What the rings had no room for. Bounded by the pool, one message per file in it, and one hole.
  std::deque<BlockRef> outbox_;
  std::deque<FileEvent> told_;
  std::deque<bool> in_ring_;  // of each message there: has it data
  struct {
    std::optional<ReadOrder::Piece> piece;  // of the last volume: being read, or the next to be
    std::uint64_t block = 0;
    disk::Extents extents;
    std::optional<std::uint32_t> chosen;  // the file that `way` is of
    disk::CacheWay way;
    bool is_open = false;
  } next_;
  std::unordered_map<std::uint32_t, Begun> begun_;  // by index on the wire
  std::unordered_map<std::uint32_t, Tags> tags_;
  bool has_last_ = false;    // the last volume is being read, or was
  bool is_waiting_ = false;  // for a volume, or a tag
  bool is_over_ = false;
};

}  // namespace onehop::source
