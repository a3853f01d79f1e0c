// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Destination: the folder that a session writes into, and what all of its volumes share.
//
//   Destination ─▶ SinkVolume::prepare (volume after volume, on a thread of its own)
//        │              └─ takes room for what it will write
//        └───────▶ Sink (the file thread) ─ has written it
//
// Opened once per session, before the peer is told "accepted". What is not const is safe on any
// thread.
#pragma once

#include <sys/statvfs.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/crypto/content_mac.hpp"
#include "engine/crypto/digest.hpp"
#include "engine/disk/opened_folders.hpp"
#include "engine/disk/page_cache.hpp"
#include "engine/disk/session_journal.hpp"
#include "engine/list/manifest.hpp"
#include "engine/list/symlink_rule.hpp"
#include "engine/sink/name_probe.hpp"

namespace onehop::sink {

/// Durability: when a file is on the disk. `none` leaves it to the kernel: after a power cut a
/// visible name may have any content.
enum class Durability : std::uint8_t { batch, file, none };

/// Room is what files take of a file system: whole blocks, and one for each name at least, so that
/// neither many small files nor many folders fit where their sizes alone would.
struct Room {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;  ///< inodes: files and folders
};

/// TakenRoom: what sessions of one process have taken of disks and not used yet, all of them, as if
/// there were one disk. Any thread.
class TakenRoom {
 public:
  /// take counts it, and gives what was taken before.
  Room take(const Room& more) noexcept {
    return {.bytes = bytes_.fetch_add(more.bytes, std::memory_order_relaxed),
            .files = files_.fetch_add(more.files, std::memory_order_relaxed)};
  }
  void give(const Room& less) noexcept {
    bytes_.fetch_sub(less.bytes, std::memory_order_relaxed);
    files_.fetch_sub(less.files, std::memory_order_relaxed);
  }
  /// quota_mutex is held from the look at what a folder holds until what is added is taken, and
  /// quotas counts what the sessions under way may still add to each folder, whatever its path.
  std::mutex quota_mutex;
  std::map<std::pair<dev_t, ino_t>, std::uint64_t> quotas;

 private:
  // Counts alone: they order nothing.
  std::atomic<std::uint64_t> bytes_{0}, files_{0};
};

struct DestinationOptions {
  /// This string is the only path that is resolved with links.
  std::string folder;
  crypto::DigestKind digest_kind = crypto::DigestKind::xxh3;
  crypto::CompareKey compare_key{};  ///< of this offer: by it what is there is compared
  Durability durability = Durability::batch;
  disk::DirectIo direct_io = disk::DirectIo::automatic;
  list::ManifestLimits limits;  ///< of each volume
  /// Left free for everyone else. Lower: other programs fail first. Higher: a full disk is refused.
  std::uint64_t reserve_bytes = std::uint64_t{64} << 20;
  /// Inodes, of which journals and the stage need some. Lower: the last files of a full disk fail
  /// for them. Higher: a disk with few is refused.
  std::uint64_t reserve_files = 16;
  bool is_room_unchecked = false;  ///< take_room refuses nothing
  /// Of all sessions of this process; null: of this one.
  std::shared_ptr<TakenRoom> room;
  /// What the folder may hold, with all below it, as Room counts; 0: no bound.
  std::uint64_t quota_bytes = 0;
  /// The session goes on in this process: a source changed.
  bool is_again = false;
  /// Of the session, also where it is_again. Null: one that allows no hidden names.
  std::shared_ptr<list::SymlinkRule> symlinks;
  /// Instead of a folder: where the one file, or stream, of a session is written, in order. It
  /// outlives the session. -1: none.
  int output_fd = -1;
};

/// check_room: `needed` fits on the disk beside `reserve` and what is `taken` and not used yet. A
/// file system that counts no inodes (f_files is 0) has as many as it needs. What is not needed is
/// not looked at. Pure. Error: exit 8 with ENOSPC, which says how much is needed and there.
[[nodiscard]] Result<void> check_room(const Room& needed, const Room& taken, const Room& reserve,
                                      const struct statvfs& disk);

class Destination {
 public:
  /// open makes nothing but a probe file that has no name. It takes over what dead sessions
  /// recorded. Errors: exit 8. Syscalls: open, openat, openat2, fstat, flock, pread.
  [[nodiscard]] static Result<std::shared_ptr<Destination>> open(DestinationOptions options);
  ~Destination();
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;

  [[nodiscard]] const DestinationOptions& options() const noexcept { return options_; }
  /// root: -1 where is_output().
  [[nodiscard]] int root() const noexcept { return root_.get(); }
  /// is_output: there is no folder.
  [[nodiscard]] bool is_output() const noexcept { return options_.output_fd >= 0; }
  /// stream_name: of a session that is a stream, what its first volume has set; empty: it is none.
  /// For the thread that prepares volumes.
  [[nodiscard]] std::string& stream_name() noexcept { return stream_name_; }
  [[nodiscard]] disk::SessionJournal& session() noexcept { return session_; }
  /// stems_in is what was called as a part or a journal in `folder`, which is `path` below the
  /// root, when the session first looked. Until the next call; for the thread that prepares
  /// volumes. Syscalls: as list_names.
  [[nodiscard]] const std::vector<std::string>& stems_in(int folder, std::string_view path);
  /// opened_folders: not where is_output().
  [[nodiscard]] disk::OpenedFolders& opened_folders() noexcept { return *opened_; }
  /// names is for the thread that prepares volumes.
  [[nodiscard]] NameProbe& names() noexcept { return *names_; }
  [[nodiscard]] list::SymlinkRule& symlinks() noexcept { return *options_.symlinks; }
  [[nodiscard]] mode_t umask_bits() const noexcept { return umask_bits_; }
  /// is_synced: files are made durable, one way or the other.
  [[nodiscard]] bool is_synced() const noexcept { return options_.durability != Durability::none; }

  /// take_room: so much will be written and made. Error: it does not fit beside the reserve and
  /// what was taken before and is not used. Sizes are the peer's claims; this is where they are
  /// held against the disk. give_room: so much was used, or will not be. Syscalls: fstatvfs.
  [[nodiscard]] Result<void> take_room(const Room& needed);
  void give_room(const Room& room) noexcept { options_.room->give(room); }
  /// on_disk is what a name with `size` bytes of content takes of the disk.
  [[nodiscard]] std::uint64_t on_disk(std::uint64_t size) const noexcept {
    return std::max<std::uint64_t>(size / name_bytes_ + (size % name_bytes_ != 0 ? 1 : 0), 1) *
           name_bytes_;
  }

 private:
  explicit Destination(DestinationOptions options);
  [[nodiscard]] Result<void> open_folder();
  [[nodiscard]] Result<void> check_quota(const Room& needed);

  const DestinationOptions options_;
  const mode_t umask_bits_;
  Fd root_;
  disk::SessionJournal session_;
  std::string stream_name_;
  std::optional<disk::OpenedFolders> opened_;                        // from open() on
  std::optional<NameProbe> names_;                                   // as well
  std::unordered_map<std::string, std::vector<std::string>> stems_;  // by path
  std::uint64_t quota_taken_ = 0;    // of options_.room->quotas, by its mutex
  std::uint64_t name_bytes_ = 4096;  // a block of the file system
  std::pair<dev_t, ino_t> folder_{};
  std::optional<std::uint64_t>
      held_bytes_;  // by the folder when the session began, once it was looked at
};

}  // namespace onehop::sink
