// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Bytes of journals: integers as they are written, and reads and writes that are whole or failed. Internal to engine/file.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace onehop::file {

/// put and get: little endian, at any alignment.
template <class Integer>
void put(std::byte* at, Integer value) noexcept {
  for (std::size_t i = 0; i < sizeof value; ++i) at[i] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
}
template <class Integer>
[[nodiscard]] Integer get(const std::byte* at) noexcept {
  Integer value = 0;
  for (std::size_t i = sizeof value; i-- > 0;) value = static_cast<Integer>(value << 8 | std::to_integer<Integer>(at[i]));
  return value;
}

/// read_at reads up to `bytes` at `offset`; less only at the end of the file. Bytes or -errno. Syscalls: pread.
[[nodiscard]] inline std::int64_t read_at(int fd, std::byte* out, std::size_t bytes, std::uint64_t offset) noexcept {
  std::size_t done_bytes = 0;
  while (done_bytes < bytes) {
    const ssize_t got = ::pread(fd, out + done_bytes, bytes - done_bytes, static_cast<off_t>(offset + done_bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -errno;
    if (got == 0) break;
    done_bytes += static_cast<std::size_t>(got);
  }
  return static_cast<std::int64_t>(done_bytes);
}

/// write_at writes all of `bytes` at `offset`. 0 or errno. Syscalls: pwrite.
[[nodiscard]] inline int write_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset) noexcept {
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

}  // namespace onehop::file
