// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AF_XDP sockets of a library in this process that keeps their descriptors to itself: DPDK's net_af_xdp. Set-up only.
#pragma once

#include <cstdint>

namespace onehop::xdp {

/// widen_sockets gives every AF_XDP socket of this process room for `tx_frames` of `frame_bytes` in the kernel, and `priority`
/// (SO_PRIORITY; 0: as it is). net_af_xdp leaves its own at net.core.wmem_default, which holds 93 copies of full frames where that
/// is 212992, and spins in sendto() while they are out. Syscalls: openat, getdents64, getsockopt, setsockopt.
void widen_sockets(std::uint32_t tx_frames, std::uint32_t frame_bytes, int priority);

}  // namespace onehop::xdp
