// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sink: the receiving half of file I/O. It writes blocks where they belong, in any order, and gives
// a file its final name only when every block and the root have the announced digests.
//
//   add() ─▶ volumes, in order; a message finds its own by the file's index on the wire
//   engine ──▶ block ─▶ own digest ─▶ write ─▶ journal; the buffer goes back to the engine
//                           │           └─▶ once a second and per 16 MiB: fdatasync of both
//   session ─▶ digest ─▶ the same? ─▶ tree
//   what is there ─▶ read, a block a turn ─▶ tag ─▶ session
//   engine ──▶ skipped ─▶ the tag of the block that is there? ─▶ its digest ─▶ tree
//   engine ──▶ hole ───▶ zeros, or a hole, in the part ─▶ tree
//   session ─▶ root ──────────────▶ the tree's? ─▶ sync, rename ─▶ FileFinished ─▶ session
//
// Blocks and what is announced of them come in any order.
//
// A volume ends when all before it have ended, all its files are in place and its pack's root was
// checked. Then its folders get mode and time, and only then the last message about its files is
// told: who has heard of all files has heard of a session that is complete.
//
// One file thread owns the Sink and calls turn(); volumes come from any thread. After a failure
// the Sink writes nothing more and only gives buffers back; `.part` and journal stay for the next
// session. It opens paths from the peer only below the destination's descriptor (confined.hpp).
#pragma once

#include <boost/icl/interval_set.hpp>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/crypto/tree.hpp"
#include "engine/disk/file_io.hpp"
#include "engine/disk/thread/block_pool.hpp"
#include "engine/disk/thread/file_worker.hpp"
#include "engine/sink/pack_sink.hpp"
#include "engine/sink/part_file.hpp"
#include "engine/sink/sink_volume.hpp"
#include "engine/sink/stream_output.hpp"

namespace onehop::sink {

struct SinkOptions {
  std::size_t slots = disk::receiver_slots;
  /// Between two checkpoints, whichever comes first. Shorter: each costs a flush; longer: a power
  /// cut loses more.
  Nanos checkpoint_span = 1s;
  std::uint64_t checkpoint_bytes = std::uint64_t{16} << 20;
};

class Sink final : public disk::FileWorker {
 public:
  Sink(std::shared_ptr<Destination> destination, std::unique_ptr<disk::FileIo> io,
       const SinkOptions& options);
  /// The kernel may still read from the pool's memory until nothing is in flight.
  ~Sink() override { io_->wait_all(); }

  /// add hands over the next volume, in order of the indices, before a message of it can come. Any
  /// thread, until is_last was added.
  void add(std::unique_ptr<SinkVolume> volume, bool is_last);

  /// turn: see FileWorker. The first one lends every buffer.
  std::size_t turn(Instant now, FileRings& rings) override;
  /// close makes durable what arrived and removes what is empty; the last checkpoint implies it.
  void close() override;

  /// is_over: the last volume has ended, or the Sink failed or had its last checkpoint.
  [[nodiscard]] bool is_over() const noexcept {
    return (is_stopped_ || is_complete()) && outbox_.empty() && told_.empty();
  }
  [[nodiscard]] Nanos nap_max() const noexcept override {
    if (stream_ && stream_->held_total() > 0) return disk::nap_max_at_end;
    return blocks_.left <= near_end_blocks ? disk::nap_max_at_end : disk::nap_max_writing;
  }
  [[nodiscard]] const char* thread_name() const noexcept override { return "onehop-write"; }
  [[nodiscard]] std::string_view io_name() const noexcept override { return io_->name(); }
  [[nodiscard]] std::string cache_text() const override { return cache_.text(); }

 private:
  /// A block of which something is known, until the tree has it.
  struct Entry {
    Digest own{}, announced{};
    bool has_own = false, has_announced = false, is_stored = false;
  };
  /// A volume from add() to its end.
  struct Writing {
    explicit Writing(std::unique_ptr<SinkVolume> given);
    std::uint64_t base = 0;  ///< of a piece: its place in the stream
    [[nodiscard]] std::uint32_t entry_of(std::uint32_t file) const noexcept {
      return file - list->first_file();
    }
    /// contains: the index of an entry, or of the pack, whether there is one or not.
    [[nodiscard]] bool contains(std::uint32_t file) const noexcept {
      return entry_of(file) <= list->entries();  // below the first it wraps around
    }
    /// is_gathered: every file is in place, or is a verified record in a batch.
    [[nodiscard]] bool is_gathered() const noexcept {
      return files_left == records_left && (!pack || pack->is_verified());
    }
    const std::unique_ptr<SinkVolume> list;
    std::unique_ptr<PackSink> pack;  // null: nothing is packed
    std::vector<bool> is_done;       // by entry
    std::size_t files_left = 0;
    std::size_t records_left = 0;  // of files_left, those of the pack
    std::vector<FileEvent> held;   // what is told when it ends
    std::vector<std::string> folders_made;
    bool are_folders_finishing = false, are_folders_finished = false;
  };
  struct OpenFile {
    OpenFile(Writing& its_volume, crypto::DigestKind kind) : volume{its_volume}, tree{kind} {}
    /// is_settled: nothing that comes of this block changes anything.
    [[nodiscard]] bool is_settled(std::uint64_t block) const {
      return boost::icl::contains(settled, block);
    }
    Writing& volume;
    PartFile part;          ///< not open: the file is there and is only compared
    bool is_other = false;  ///< FileAction::compare: a block differs from what was announced
    int fault = 0;          ///< not 0: the file is left out for this
    crypto::DigestTree tree;
    boost::icl::interval_set<std::uint64_t> settled;  ///< runs of blocks that are in the tree
    std::uint64_t settled_total = 0;                  ///< blocks
    std::unordered_map<std::uint64_t, Entry> entries;
    std::uint32_t writes_in_flight = 0;
    bool is_syncing = false, is_sync_broken = false, has_root = false, has_received = false;
    Digest root{};
  };

  // sink.cpp
  [[nodiscard]] bool is_complete() const noexcept { return taken_.has_last && volumes_.empty(); }
  std::size_t take_blocks(FileRings& rings);
  std::size_t take_commands(FileRings& rings, std::size_t count_max);
  [[nodiscard]] bool has_room() const noexcept;
  void take(const BlockRef& block);
  void take(const AnnouncedDigest& announced);
  void take(const AnnouncedRoot& announced);
  void take(const EndAtCheckpoint&) { ends_at_checkpoint_ = true; }
  void take(const HeldBlock& told) { fail(told.file, FileFailure::protocol); }  // we tell of them
  void take(const HeldEnd& told) { fail(told.file, FileFailure::protocol); }
  void on_unknown(std::uint32_t file);
  void on_block(Writing& volume, const BlockRef& block);
  void on_pack(Writing& volume, const BlockRef& block);
  void on_pack_failure(const MaybeFailure& failure);
  void on_skipped(Writing& volume, const BlockRef& block);
  [[nodiscard]] OpenFile* open_announced(Writing& volume, std::uint32_t file, std::uint64_t offset);
  void on_checkpoint();
  [[nodiscard]] static bool is_expected(const Writing& volume, std::uint32_t file,
                                        std::uint64_t offset);
  [[nodiscard]] OpenFile* open_file(Writing& volume, std::uint32_t file);
  void write(OpenFile& open, const BlockRef& block);
  void on_stored(OpenFile& open, const BlockRef& block);
  void settle(std::uint32_t file, std::uint64_t index);
  [[nodiscard]] bool note_settled(OpenFile& open, std::uint64_t first, std::uint64_t end);
  void finish_if_complete(std::uint32_t file);
  void give_back(const BlockRef& block);
  void refuse(OpenFile& open, std::uint32_t file, int errno_value);
  void fail(std::uint32_t file, FileFailure failure, int errno_value = 0);

  // sink_held.cpp
  std::size_t read_held();
  [[nodiscard]] Fd open_held(const Writing& volume, std::uint32_t file) const;

  // sink_holes.cpp
  void on_hole(Writing& volume, const BlockRef& run);
  [[nodiscard]] bool add_hole(OpenFile& open, const BlockRef& run);
  void hold_hole(const Writing& volume, const BlockRef& run);

  // sink_volumes.cpp
  void take_volumes();
  [[nodiscard]] Writing* volume_of(std::uint32_t file);
  void tell(Writing& volume, const FileEvent& done, std::size_t files);
  void tell_packed();
  bool finish_folders();
  void end_volumes();
  void tell_held();
  [[nodiscard]] bool is_stream_open(Writing& volume);
  void write_stream();
  void drop_stream();
  [[nodiscard]] bool finish_stream(Writing& last);

  // sink_durable.cpp
  void add_to_write(const BlockRef& block, std::uint64_t offset);
  void submit_write();
  void collect(bool is_waiting);
  void on_written(std::uint32_t slot, std::int64_t result);
  void on_block_written(const BlockRef& block, std::int64_t result);
  void on_synced(std::uint32_t file, std::int64_t result);
  void checkpoint_if_due(Instant now);
  void start_syncs();
  void wait_for_room();
  void wait_for_all();
  void make_durable();
  void keep_progress();
  void finish(std::uint32_t file);
  [[nodiscard]] bool finish_part(OpenFile& open, FileFinished& done);
  void remove_folders_made() noexcept;

  const std::shared_ptr<Destination> destination_;
  const SinkOptions options_;
  std::unique_ptr<disk::FileIo> io_;
  disk::BlockPool pool_;
  disk::PageCache cache_;
  struct Added {
    std::unique_ptr<SinkVolume> volume;
    bool is_last = false;
  };
  struct {
    std::mutex mutex;
    std::deque<Added> volumes;  // not looked at yet
  } added_;
  std::deque<std::unique_ptr<Writing>> volumes_;  // that have not ended, in order
  struct {
    std::uint32_t end_file = 0;      // behind the newest volume
    std::uint64_t stream_bytes = 0;  // of the pieces so far
    bool has_last = false;           // the last volume is or was in volumes_
  } taken_;
  PackCommit commit_;  // after volumes_: its thread, which reads of them, ends first
  std::optional<StreamOutput> stream_;  // once something of it has come
  std::unordered_map<std::uint32_t, std::unique_ptr<OpenFile>> open_;  // by index on the wire
  struct InWrite {
    BlockRef block;
    std::optional<std::uint32_t> next;  ///< the slot of the block behind it in the same operation
  };
  std::vector<InWrite> writing_;  // by slot
  /// What is written next, as one operation: blocks of one part that follow each other and come in
  /// one turn. If they waited longer for others, the sender would take this for a slower disk.
  struct {
    disk::FileOperation write;
    std::size_t count = 0;
    std::uint32_t file = 0, last_slot = 0;
  } next_;
  std::deque<BlockRef> outbox_;  // buffers for the engine
  std::deque<FileEvent> told_;   // for the session
  std::size_t done_total_ = 0;   // files in place, folders too
  /// 2 MiB: 28 ms at 600 Mbit/s, three of the longest naps.
  static constexpr std::uint64_t near_end_blocks = 8;
  /// Blocks known but not yet in the tree, and runs that are: 16 GiB of data ahead of its digests,
  /// about 10 MiB of memory. Lower: a stalled control connection ends a fast transfer. Higher: more
  /// memory.
  static constexpr std::size_t entries_max = 65'536;
  struct {
    std::uint64_t left = 0;           // of all wanted files that are known, not yet in their trees
    std::size_t entries = 0;          // over all open files, and a run is one
    std::size_t announced_early = 0;  // digests whose block has not come
  } blocks_;
  /// Held: what is there and is read.
  struct Held {
    void end_file() {
      files.pop_front();
      there.close();
      run = block = 0;
      is_begun = false;
    }
    HeldReader reader;
    std::deque<std::uint32_t> files;  // in order; the first is being read
    Fd there;                         // the first
    std::size_t run = 0;              // the next block, and the run that it is in
    std::uint64_t block = 0;
    bool is_begun = false;
  } held_;
  struct {
    Instant at{};                      // of the last one
    std::uint64_t unsynced_bytes = 0;  // stored since it began
  } checkpoint_;
  bool has_lent_ = false, ends_at_checkpoint_ = false, is_stopped_ = false, is_closed_ = false;
};

}  // namespace onehop::sink
