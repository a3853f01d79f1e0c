// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The AF_XDP constants that kernel headers of 6.1 do not have yet. Values: include/uapi/linux/if_xdp.h of Linux 6.18.
// A kernel that does not know one answers EINVAL or ENOPROTOOPT, which the callers tolerate or name.
#pragma once

#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <sys/socket.h>

#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)  // bind flag, Linux 6.6
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)  // descriptor option: the frame goes on in the next descriptor, Linux 6.6
#endif
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9  // socket option: descriptors per sendto() in copy mode, Linux 6.17
#endif
#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

namespace onehop::xdp {

/// What the kernel keeps free in front of each received frame (XDP_PACKET_HEADROOM).
inline constexpr unsigned packet_headroom_bytes = 256;

}  // namespace onehop::xdp
