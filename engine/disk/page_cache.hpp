// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PageCache: which files of a session are read and written past the page cache, and how.
//
//   file ─▶ choose() ─┬─ small, or it fits in the session's share of memory ─▶ cached
//                     ├─ its file system takes O_DIRECT ─────────────────────▶ direct
//                     └─ it does not ─▶ dropped: through the cache, and out of it behind
//
// A transfer that is larger than memory would push out what other programs have there, and finding
// a page for each 4 KiB costs more CPU time than moving them. Direct I/O is asked of a descriptor
// that is open (fcntl), so no name is looked up again. It takes whole units: the last part of a
// file is read with what would follow it, and written through the cache. Where direct I/O fails
// although the file system promised it, the file goes on through the cache. O_DIRECT makes nothing
// durable: syncs stay as they are. One file thread owns it, or whoever prepares a volume.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace onehop::disk {

/// DirectIo: the user's choice, --direct-io. `always` leaves out files below direct_bytes_min.
enum class DirectIo : std::uint8_t { automatic, always, never };

/// Lower: a file's first access, which waits for the disk, weighs more than what it keeps out of
/// the cache. Higher: a folder of many such files fills the cache.
inline constexpr std::uint64_t direct_bytes_min = std::uint64_t{1} << 20;
/// Of the memory that programs could get, a session may fill a quarter. Less: a file that is used
/// at once has to be read again. More: what others have there goes.
inline constexpr std::uint64_t available_per_share = 4;

/// page_bytes: what buffers of direct I/O are aligned to. No disk has larger sectors.
inline constexpr std::uint32_t page_bytes = 4096;

/// CacheWay is how one file is read or written.
struct CacheWay {
  enum class Kind : std::uint8_t { cached, direct, dropped };
  Kind kind = Kind::cached;
  /// direct: offsets and lengths are multiples of it; a power of two, a block's length at most.
  std::uint32_t unit_bytes = 1;

  [[nodiscard]] bool is_direct() const noexcept { return kind == Kind::direct; }
  /// spare is how many bytes behind `bytes` are to be read with them.
  [[nodiscard]] std::uint32_t spare(std::uint32_t bytes) const noexcept {
    return (unit_bytes - bytes % unit_bytes) % unit_bytes;
  }
};

/// share_of_memory is what a session may fill. Syscalls: openat, read of /proc/meminfo; 0 without.
[[nodiscard]] std::uint64_t share_of_memory() noexcept;

/// set_direct makes the descriptor's transfers pass the page cache, or go through it again. 0 or
/// errno. Syscalls: fcntl, once or twice.
int set_direct(int fd, bool is_direct) noexcept;

class PageCache {
 public:
  /// Without a share that is share_of_memory(), looked up for the first large file.
  explicit PageCache(DirectIo wanted, std::optional<std::uint64_t> share_bytes = {}) noexcept
      : wanted_{wanted}, share_bytes_{share_bytes} {}

  /// choose decides for a file of `size` bytes and sets its descriptor to that. What a descriptor
  /// was set to before does not count. Syscalls: for a file of direct_bytes_min fcntl, statx,
  /// fstatfs.
  [[nodiscard]] CacheWay choose(int fd, std::uint64_t size) noexcept;

  /// give_up: direct I/O failed with `errno_value`; 0: it moved less than it was asked for. From
  /// here on the file goes through the cache. Syscalls: as set_direct.
  void give_up(int fd, CacheWay& way, int errno_value) noexcept;

  /// read fills the first `bytes` of `room`, which is aligned to a page and has room for their
  /// spare. Bytes, less only at the end of the file, or -errno. Syscalls: pread; fcntl, fadvise64.
  [[nodiscard]] std::int64_t read(int fd, CacheWay& way, std::span<std::byte> room,
                                  std::uint32_t bytes, std::uint64_t offset) noexcept;

  /// text: "" or what differs from files that go through the cache, for people and --json.
  [[nodiscard]] std::string text() const;

 private:
  const DirectIo wanted_;
  std::optional<std::uint64_t> share_bytes_;
  std::uint64_t cached_bytes_ = 0;
  bool has_direct_ = false, has_dropped_ = false;
  int given_up_errno_ = 0;
};

/// drop_behind takes out of the cache what of a dropped file was read, a few MiB at a time: it is
/// called for each block, with where it ends. Syscalls: fadvise64.
void drop_behind(int fd, const CacheWay& way, std::uint64_t end, bool is_last) noexcept;
/// drop takes a range that is on the disk out of the cache. Syscalls: fadvise64.
void drop(int fd, std::uint64_t begin, std::uint64_t end) noexcept;

}  // namespace onehop::disk
