// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Bytes of journals and blocks: structs as written, whole reads and writes.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "engine/base/units.hpp"
#include "engine/crypto/digest.hpp"

namespace onehop::disk {

/// disk_bytes is the room that a file takes on the disk: holes are none.
[[nodiscard]] inline std::uint64_t disk_bytes(const struct stat& status) noexcept {
  constexpr std::uint64_t unit_bytes = 512;  // stat(2), st_blocks
  return static_cast<std::uint64_t>(status.st_blocks) * unit_bytes;
}

// What a journal has on the disk is a struct, as it lies in memory.
static_assert(std::endian::native == std::endian::little);
template <class Struct>
[[nodiscard]] std::span<const std::byte> bytes_of(const Struct& value) noexcept {
  return std::as_bytes(std::span{&value, 1});
}
/// checksum_of a journal's bytes is the beginning of their digest.
[[nodiscard]] inline std::uint64_t checksum_of(std::span<const std::byte> bytes) noexcept {
  const Digest digest = crypto::block_digest(crypto::DigestKind::xxh3, bytes);
  std::uint64_t checksum = 0;
  std::memcpy(&checksum, digest.data(), sizeof checksum);
  return checksum;
}

/// read_at_least fills `out` from `offset` with `bytes_min` or more; less only at the end of the
/// file. Bytes or -errno. Syscalls: pread, at least one.
[[nodiscard]] inline std::int64_t read_at_least(int fd, std::span<std::byte> out,
                                                std::size_t bytes_min,
                                                std::uint64_t offset) noexcept {
  std::size_t done_bytes = 0;
  do {
    const ssize_t got = ::pread(fd, out.data() + done_bytes, out.size() - done_bytes,
                                static_cast<off_t>(offset + done_bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -errno;
    if (got == 0) break;
    done_bytes += static_cast<std::size_t>(got);
  } while (done_bytes < bytes_min);
  return static_cast<std::int64_t>(done_bytes);
}

/// read_at fills `out` from `offset`; less only at the end of the file. Bytes or -errno.
/// Syscalls: pread.
[[nodiscard]] inline std::int64_t read_at(int fd, std::span<std::byte> out,
                                          std::uint64_t offset) noexcept {
  return out.empty() ? 0 : read_at_least(fd, out, out.size(), offset);
}

/// write_at writes all of `bytes` at `offset`. 0 or errno. Syscalls: pwrite.
[[nodiscard]] inline int write_at(int fd, std::span<const std::byte> bytes,
                                  std::uint64_t offset) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return ENOSPC;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return 0;
}

// A file's time is nanoseconds since 1970, modulo 2^64: from time_min_s on, the year 1901, to 2486.
// That is what XFS has, and more than ext4.
//= Linux fs/xfs/libxfs/xfs_format.h, "bigtime"
inline constexpr std::int64_t time_min_s = -(std::int64_t{1} << 31);
/// The last whole second.
inline constexpr std::int64_t time_max_s =
    time_min_s - 1 +
    static_cast<std::int64_t>(std::numeric_limits<std::uint64_t>::max() / 1'000'000'000);

/// ns_of and time_of. A time that has no such number becomes the nearest that has one.
[[nodiscard]] inline std::int64_t ns_of(const timespec& time) noexcept {
  const std::int64_t second = std::clamp<std::int64_t>(time.tv_sec, time_min_s, time_max_s);
  const std::int64_t rest = second < time.tv_sec   ? 999'999'999
                            : second > time.tv_sec ? 0
                                                   : time.tv_nsec;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(second) * 1'000'000'000U +
                                   static_cast<std::uint64_t>(rest));
}
[[nodiscard]] inline timespec time_of(std::int64_t ns) noexcept {
  // Counted from time_min_s there is no sign.
  const std::uint64_t since =
      static_cast<std::uint64_t>(ns) - static_cast<std::uint64_t>(time_min_s) * 1'000'000'000U;
  return {.tv_sec = time_min_s + static_cast<std::int64_t>(since / 1'000'000'000U),
          .tv_nsec = static_cast<std::int64_t>(since % 1'000'000'000U)};
}

/// is_not_kept: a mode or a time was refused by a file system that keeps none, or because the file
/// is another user's. No content depends on it.
[[nodiscard]] inline bool is_not_kept(int errno_value) noexcept {
  return errno_value == EPERM || errno_value == EOPNOTSUPP || errno_value == ENOSYS;
}
/// set_mode, and set_mtime, which leaves the time of access alone. 0, also where it is not kept; or
/// -1 with errno. Syscalls: fchmod; futimens.
[[nodiscard]] inline int set_mode(int fd, mode_t mode) noexcept {
  return ::fchmod(fd, mode) == 0 || is_not_kept(errno) ? 0 : -1;
}
[[nodiscard]] inline int set_mtime(int fd, std::int64_t mtime_ns) noexcept {
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, time_of(mtime_ns)};
  return ::futimens(fd, times) == 0 || is_not_kept(errno) ? 0 : -1;
}

/// read_whole reads a file; empty if longer than `bytes_max` or unreadable. Syscalls: fstat, pread.
[[nodiscard]] inline std::vector<std::byte> read_whole(int fd, std::uint64_t bytes_max) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || static_cast<std::uint64_t>(status.st_size) > bytes_max)
    return {};
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  const std::int64_t read = read_at(fd, bytes, 0);
  bytes.resize(read > 0 ? static_cast<std::size_t>(read) : 0);
  return bytes;
}

}  // namespace onehop::disk
