// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// MemInfo: the kernel's memory account of a socket.
#pragma once

#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>

namespace onehop {

/// MemInfo is a socket's own account, in truesize (bytes of buffer memory).
struct MemInfo {
  std::uint32_t rmem_bytes = 0;
  std::uint32_t rcvbuf_bytes = 0;
  std::uint32_t wmem_bytes = 0;
  std::uint32_t sndbuf_bytes = 0;
  std::uint32_t drops = 0;  ///< wraps
};
/// read_mem_info is all zero where the kernel refuses. Syscalls: getsockopt (0.2 us).
[[nodiscard]] inline MemInfo read_mem_info(int fd) noexcept {
  std::array<std::uint32_t, SK_MEMINFO_VARS> fields{};
  socklen_t bytes = sizeof fields;
  if (::getsockopt(fd, SOL_SOCKET, SO_MEMINFO, fields.data(), &bytes) != 0) return {};
  return {.rmem_bytes = fields[SK_MEMINFO_RMEM_ALLOC],
          .rcvbuf_bytes = fields[SK_MEMINFO_RCVBUF],
          .wmem_bytes = fields[SK_MEMINFO_WMEM_ALLOC],
          .sndbuf_bytes = fields[SK_MEMINFO_SNDBUF],
          .drops = fields[SK_MEMINFO_DROPS]};
}

}  // namespace onehop
