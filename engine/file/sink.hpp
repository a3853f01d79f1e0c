// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sink: the receiving half of file I/O. It writes blocks where they belong, in any order, and gives
// a file its final name only when every block and the root have the announced digests.
//
//   engine ─▶ block ─▶ own digest ─▶ write ─▶ journal; the buffer goes back to the engine
//                          │           └─▶ once a second and per 16 MiB: fdatasync of both
//   engine ─▶ digest ─▶ the same? ─▶ tree
//   engine ─▶ root ──────────────▶ the tree's? ─▶ sync, rename ─▶ file_done ─▶ engine
//
// prepare() runs before the peer is told "accepted": it validates, checks existing names, room and
// permission, and hashes what an earlier session left. A file that is visible with the announced
// size, or that a session which died has delivered, is compared with what the sender announces and
// never written. After that one file thread owns the Sink and calls turn(). After a failure the
// Sink writes nothing more and only gives buffers back; `.part` and journal stay for the next
// session. It opens paths from the peer only below the destination's descriptor (confined.hpp).
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/base/spsc_ring.hpp"
#include "engine/crypto/tree.hpp"
#include "engine/file/block_pool.hpp"
#include "engine/file/file_io.hpp"
#include "engine/file/file_worker.hpp"
#include "engine/file/pack_sink.hpp"
#include "engine/file/part_file.hpp"

namespace onehop::file {

/// Conflict: an existing name that the policy for it cannot deal with.
struct Conflict {
  std::uint32_t file = 0;  ///< index in the manifest
  std::string_view cause;  ///< a literal, "that name exists"
  bool is_regular = false;
  std::uint64_t size = 0;  ///< bytes, of a regular file
};

/// Existing: what has a file's final name and keeps it.
enum class Existing : std::uint8_t {
  none,      ///< nothing has it, or the file is received all the same
  expected,  ///< a regular file of the announced size, or one that a dead session delivered:
             ///< another content is an error
  compared,  ///< OnExist::skip, a regular file of the announced size: block digests will tell
             ///< whether it is the same
  other,     ///< OnExist::skip, and it cannot be the same: another size, or no regular file
  unread,    ///< OnExist::skip, a regular file of the announced size that cannot be read
};

struct SinkOptions {
  /// The destination; this string is the only path that is resolved with links.
  std::string folder;
  Digest approved{};  ///< manifest_hash() of what was approved; another manifest is refused (P7)
  OnExist on_exist = OnExist::ask;
  Durability durability = Durability::batch;
  std::vector<OnExist> on_exist_of;  ///< by file, instead of on_exist; empty: that for all
  /// Where not null: prepare() appends every conflict before it fails with the first.
  std::vector<Conflict>* conflicts = nullptr;
  /// Ends prepare() early, with exit 7: nobody waits for it any more. Any thread may ask for it.
  std::stop_token withdrawn{};
  crypto::DigestKind digest_kind = crypto::DigestKind::xxh3;
  ManifestLimits limits;
  /// By file; empty: none. True: its source changed in this session; its part is begun anew.
  std::vector<bool> is_changed;
  std::size_t slots = receiver_slots;
  /// Left free for everyone else. Lower: other programs fail first. Higher: a full disk is refused.
  std::uint64_t reserve_bytes = std::uint64_t{64} << 20;
  /// Between two checkpoints, whichever comes first. Shorter: each costs a flush; longer: a power
  /// cut loses more.
  Nanos checkpoint_span = 1s;
  std::uint64_t checkpoint_bytes = std::uint64_t{16} << 20;
};

class Sink final : public FileWorker {
 public:
  /// prepare may block for long: it hashes what it offers to resume, unless that is withdrawn.
  /// Nothing is written but a probe file that has no name. Errors: exit 8 (local), 2 (the folder)
  /// or 7 (withdrawn). Syscalls: open, openat2, statvfs, fstatat, pread, flock.
  [[nodiscard]] static Result<std::unique_ptr<Sink>> prepare(
      std::shared_ptr<const Manifest> manifest, SinkOptions options, std::unique_ptr<FileIo> io);
  [[nodiscard]] static Result<std::unique_ptr<Sink>> prepare(Manifest manifest, SinkOptions options,
                                                             std::unique_ptr<FileIo> io) {
    return prepare(std::make_shared<const Manifest>(std::move(manifest)), std::move(options),
                   std::move(io));
  }
  /// The kernel may still read from the pool's memory until nothing is in flight.
  ~Sink() override { io_->wait_all(); }

  /// For the accept message, by manifest index. Read them before the file thread starts.
  [[nodiscard]] const std::vector<std::vector<Claim>>& claims() const noexcept { return claims_; }
  [[nodiscard]] const std::vector<bool>& is_wanted() const noexcept { return is_wanted_; }
  [[nodiscard]] const std::vector<Existing>& existing() const noexcept { return existing_; }
  /// block_sizes are the files as the engine is to count them.
  [[nodiscard]] std::vector<std::uint64_t> block_sizes() const {
    return file::block_sizes(manifest_, pack_ ? pack_->pack() : Pack{});
  }

  /// turn: see FileWorker. The first one lends every buffer.
  std::size_t turn(Instant now, SpscRing<BlockRef>& to_engine,
                   SpscRing<BlockRef>& from_engine) override;
  /// close makes durable what arrived and removes what is empty; abort implies it.
  void close() override;

  /// is_over: every wanted file has its final name, or the Sink failed or was aborted.
  [[nodiscard]] bool is_over() const noexcept override {
    return (is_stopped_ || files_left_ == 0) && outbox_.empty();
  }
  [[nodiscard]] Nanos nap_max() const noexcept override {
    return blocks_left_ <= near_end_blocks ? nap_max_at_end : nap_max_writing;
  }
  [[nodiscard]] const char* thread_name() const noexcept override { return "onehop-write"; }
  [[nodiscard]] std::string_view io_name() const noexcept override { return io_->name(); }
  /// checkpoints_total counts the syncs that were started beside the writes.
  [[nodiscard]] std::uint64_t checkpoints_total() const noexcept { return checkpoints_total_; }

 private:
  /// A block of which something is known, until the tree has it.
  struct Entry {
    Digest own{}, announced{};
    bool has_own = false, has_announced = false, is_stored = false;
  };
  struct OpenFile {
    explicit OpenFile(crypto::DigestKind kind) : tree{kind} {}
    PartFile part;          ///< not open: the file is there and is only compared
    bool is_other = false;  ///< Existing::compared: a block differs from what was announced
    crypto::DigestTree tree;
    std::uint64_t next_leaf = 0;  ///< every block below is in the tree
    std::unordered_map<std::uint64_t, Entry> entries;
    std::uint32_t writes_in_flight = 0;
    bool is_syncing = false, is_sync_broken = false, has_root = false, has_received = false;
    Digest root{};
  };

  Sink(std::shared_ptr<const Manifest> manifest, SinkOptions options, std::unique_ptr<FileIo> io);

  // sink_prepare.cpp
  [[nodiscard]] Result<void> open_folder();
  [[nodiscard]] Result<void> check_existing();
  [[nodiscard]] Result<void> check_existing_name(std::uint32_t file);
  [[nodiscard]] Result<void> apply_policy(std::uint32_t file, const struct stat& status,
                                          const Place& place);
  [[nodiscard]] std::optional<unsigned> find_delivered(std::uint32_t file,
                                                       const Place& place) const;
  [[nodiscard]] Result<void> compare(std::uint32_t file, int folder, const std::string& leaf);
  void keep(std::uint32_t file, const struct stat& status, const Place& place);
  [[nodiscard]] Error conflict(std::uint32_t file, const struct stat& status,
                               std::string_view cause, std::string_view hint);
  [[nodiscard]] Result<void> find_part(std::uint32_t file);
  [[nodiscard]] std::vector<Claim> hash_listed(int fd, std::uint64_t size,
                                               const std::vector<Claim>& listed);
  [[nodiscard]] Result<void> check_room() const;
  void make_pack();

  // sink.cpp
  void handle(Instant now, const BlockRef& message);
  void on_block(const BlockRef& block);
  void on_pack(Instant now, const BlockRef& message);
  void on_pack_failure(const std::optional<PackFailure>& failure);
  void tell_packed();
  void on_digest(const BlockRef& message);
  void on_root(const BlockRef& message);
  void on_stop(const BlockRef& message);
  [[nodiscard]] bool is_in_manifest(const BlockRef& message) const noexcept;
  [[nodiscard]] OpenFile* open_file(std::uint32_t file);
  /// is_there: visible, and compared instead of written.
  [[nodiscard]] bool is_there(std::uint32_t file) const noexcept {
    return existing_[file] == Existing::expected || existing_[file] == Existing::compared;
  }
  [[nodiscard]] OnExist policy_of(std::uint32_t file) const noexcept;
  [[nodiscard]] PartOptions part_options(std::uint32_t file) const;
  [[nodiscard]] Result<PartFile> open_part(std::uint32_t file) const;
  void write(OpenFile& open, const BlockRef& block);
  void on_stored(OpenFile& open, const BlockRef& block);
  void settle(std::uint32_t file, std::uint64_t block);
  void finish_if_complete(std::uint32_t file);
  void give_back(const BlockRef& block);
  void fail(std::uint32_t file, FileFailure failure, int errno_value = 0);

  // sink_durable.cpp
  void collect(bool is_waiting);
  void on_written(std::uint32_t slot, std::int64_t result);
  void on_synced(std::uint32_t file, std::int64_t result);
  void checkpoint_if_due(Instant now);
  void start_syncs();
  void wait_for_room();
  void wait_for_all();
  void make_durable();
  void keep_progress();
  void finish(std::uint32_t file);
  void remove_folders_made() noexcept;

  // A million entries are 56 MB: one copy serves all.
  const std::shared_ptr<const Manifest> shared_manifest_;
  const Manifest& manifest_;
  SinkOptions options_;
  SessionJournal session_;
  PartOptions part_options_;
  std::unique_ptr<FileIo> io_;
  BlockPool pool_;
  Fd root_;
  std::vector<std::vector<Claim>> claims_;  // by file; sorted by block
  std::vector<bool> is_wanted_, is_done_;
  std::vector<Existing> existing_;
  // Of files that a dead session delivered under another name.
  std::unordered_map<std::uint32_t, unsigned> delivered_numbers_;
  std::unordered_map<std::uint32_t, std::unique_ptr<OpenFile>> open_;
  std::unique_ptr<PackSink> pack_;  // null: nothing is packed
  bool has_pack_ = false;           // small files are, if they are sent
  std::vector<BlockRef> writing_;   // by slot
  std::deque<BlockRef> outbox_;
  std::vector<std::string> folders_made_;
  std::string missing_folder_;  // found by prepare(), with its '/'; empty: none yet
  std::size_t files_left_ = 0;
  /// 2 MiB: 28 ms at 600 Mbit/s, three of the longest naps.
  static constexpr std::uint64_t near_end_blocks = 8;
  std::uint64_t blocks_left_ = 0;    // of all wanted files, not yet in their trees
  std::size_t entries_total_ = 0;    // over all open files
  std::size_t announced_early_ = 0;  // digests whose block has not come
  Instant checkpoint_at_{};
  std::uint64_t unsynced_bytes_ = 0;  // stored since the last checkpoint began
  std::uint64_t checkpoints_total_ = 0;
  bool are_folders_finished_ = false;
  bool has_lent_ = false, is_stopped_ = false, is_closed_ = false;
};

}  // namespace onehop::file
