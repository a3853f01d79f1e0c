// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The constants of the steering program. Shared by steer.bpf.c and steer.cpp, so it is C. Address
// and port are in network byte order; an IPv4 address stands in the first word.
#ifndef ONEHOP_XDP_STEER_CONFIG_H
#define ONEHOP_XDP_STEER_CONFIG_H

#include <linux/types.h>

struct onehop_steer_config {
  __u32 local_address[4];
  __u16 local_port;
  __u8 is_ipv6;
  __u8 padding;
};

#endif
