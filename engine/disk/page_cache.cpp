// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/disk/page_cache.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "engine/base/block.hpp"
#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/disk/file_bytes.hpp"

namespace onehop::disk {

namespace {

// Dropped at a time. Less: a call for each block. More: so much more is in the cache.
constexpr std::uint64_t drop_bytes = std::uint64_t{4} << 20;

enum class Takes : std::uint8_t { direct, nothing, memory };
struct Support {
  Takes takes = Takes::nothing;
  std::uint32_t unit_bytes = page_bytes;
};

/// What the kernel says of a file (Linux 6.1, some file systems). Else those file systems take
/// direct I/O that have done so for long. tmpfs accepts the flag and keeps all in memory anyway.
Support support_of(int fd) noexcept {
#ifdef STATX_DIOALIGN
  struct statx status {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0) {
    const std::uint32_t unit = std::max(status.stx_dio_offset_align, page_bytes);
    const bool is_taken = status.stx_dio_offset_align != 0 &&
                          status.stx_dio_mem_align <= page_bytes && std::has_single_bit(unit) &&
                          unit <= block_bytes;
    return {is_taken ? Takes::direct : Takes::nothing, unit};
  }
#endif
  struct statfs system {};
  if (::fstatfs(fd, &system) != 0) return {};
  switch (static_cast<std::uint32_t>(system.f_type)) {
    case EXT4_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case XFS_SUPER_MAGIC: return {Takes::direct};
    case TMPFS_MAGIC:
    case RAMFS_MAGIC: return {Takes::memory};
    default: return {};
  }
}

}  // namespace

std::uint64_t share_of_memory() noexcept {
  const Fd file{::open("/proc/meminfo", O_RDONLY | O_CLOEXEC)};
  std::array<char, page_bytes> text{};
  const std::int64_t bytes =
      file.is_open() ? read_at(file.get(), std::as_writable_bytes(std::span{text}), 0) : 0;
  const std::string_view all{text.data(),
                             static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0))};
  constexpr std::string_view name = "MemAvailable:";
  const std::size_t at = all.find(name);
  if (at == std::string_view::npos) return 0;
  const std::size_t digit = all.find_first_not_of(' ', at + name.size());
  std::uint64_t kibibytes = 0;
  if (digit != std::string_view::npos)
    std::from_chars(all.data() + digit, all.data() + all.size(), kibibytes);
  return kibibytes * 1024 / available_per_share;
}

int set_direct(int fd, bool is_direct) noexcept {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return errno;
  const int wanted = is_direct ? flags | O_DIRECT : flags & ~O_DIRECT;
  return wanted == flags || ::fcntl(fd, F_SETFL, wanted) == 0 ? 0 : errno;
}

CacheWay PageCache::choose(int fd, std::uint64_t size) noexcept {
  if (size < direct_bytes_min) return {};
  if (wanted_ == DirectIo::automatic && !share_bytes_) share_bytes_ = share_of_memory();
  const bool is_cached = wanted_ == DirectIo::never ||
                         (wanted_ == DirectIo::automatic && cached_bytes_ + size <= *share_bytes_);
  const Support support = is_cached ? Support{} : support_of(fd);
  if (!is_cached && support.takes == Takes::direct && set_direct(fd, true) == 0) {
    has_direct_ = true;
    return {CacheWay::Kind::direct, support.unit_bytes};
  }
  set_direct(fd, false);
  if (!is_cached && support.takes == Takes::nothing) {
    has_dropped_ = true;
    return {CacheWay::Kind::dropped};
  }
  cached_bytes_ += size;
  return {};
}

void PageCache::give_up(int fd, CacheWay& way, int errno_value) noexcept {
  set_direct(fd, false);
  way = {CacheWay::Kind::dropped};
  if (errno_value != 0) given_up_errno_ = errno_value;
}

std::int64_t PageCache::read(int fd, CacheWay& way, std::span<std::byte> room, std::uint32_t bytes,
                             std::uint64_t offset) noexcept {
  if (way.is_direct()) {
    const std::int64_t got = read_at_least(fd, room.first(bytes + way.spare(bytes)), bytes, offset);
    if (got >= bytes) return bytes;
    give_up(fd, way, got < 0 ? static_cast<int>(-got) : 0);
  }
  const std::int64_t got = read_at(fd, room.first(bytes), offset);
  if (got > 0) drop_behind(fd, way, offset + static_cast<std::uint64_t>(got), got < bytes);
  return got;
}

std::string PageCache::text() const {
  if (given_up_errno_ != 0) return ", direct until it failed (" + errno_text(given_up_errno_) + ")";
  if (has_direct_) return has_dropped_ ? ", direct; some dropped behind" : ", direct";
  return has_dropped_ ? ", dropped behind" : "";
}

void drop_behind(int fd, const CacheWay& way, std::uint64_t end, bool is_last) noexcept {
  if (way.kind != CacheWay::Kind::dropped || (end % drop_bytes != 0 && !is_last)) return;
  drop(fd, end == 0 ? 0 : (end - 1) / drop_bytes * drop_bytes, end);
}

void drop(int fd, std::uint64_t begin, std::uint64_t end) noexcept {
  if (begin < end)
    ::posix_fadvise(fd, static_cast<off_t>(begin), static_cast<off_t>(end - begin),
                    POSIX_FADV_DONTNEED);
}

}  // namespace onehop::disk
