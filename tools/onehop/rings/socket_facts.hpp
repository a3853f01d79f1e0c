// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the kernel says of an AF_XDP socket of another process: by the socket itself, where it can
// be borrowed for a moment (pidfd_getfd), and by sock_diag, which answers for the sockets of a
// network namespace, where the kernel has it (CONFIG_XDP_SOCKETS_DIAG).
#pragma once

#include <linux/if_xdp.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "engine/base/result.hpp"
#include "tools/onehop/rings/maps.hpp"

namespace onehop::rings {

struct SocketFacts {
  std::string interface;  ///< empty: not known, or not bound yet
  std::optional<std::uint32_t> queue;
  std::optional<std::uint32_t> umem;  ///< the kernel's number: sockets that share one have the same
  std::optional<bool> is_zero_copy;
  std::array<std::uint32_t, ring_kinds> entries{};  ///< by RingKind; 0: not known
  std::optional<xdp_statistics> counts;
  std::string missing;  ///< why interface and queue are not known
};
using FactsByInode = std::map<std::uint64_t, SocketFacts>;

/// take_diag adds a message of the kernel to `facts`: interface and mode, entries, counts. The
/// interface is its number in `ifindex`. Pure.
struct DiagSocket {
  std::uint64_t inode = 0;
  std::uint32_t ifindex = 0;  ///< 0: not bound
  SocketFacts facts;
};
[[nodiscard]] std::optional<DiagSocket> parse_diag(std::span<const std::byte> message);

/// read_facts asks for the sockets in `inodes` of that process. It does not fail: what is missing
/// is missing. Syscalls: as borrow_socket(), getsockopt, ioctl, setns in a thread of its own,
/// netlink.
[[nodiscard]] FactsByInode read_facts(pid_t pid, std::span<const std::uint64_t> inodes);

/// read_layout is where the kernel has indices and entries in its rings. All sockets of a kernel
/// have the same, so one of our own will do, or else one of that process. Error: 10.
[[nodiscard]] Result<xdp_mmap_offsets> read_layout(pid_t pid, std::span<const RingMapping> rings);

}  // namespace onehop::rings
