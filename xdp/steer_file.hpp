// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The steering program for a foreign loader: DPDK's net_af_xdp takes the path of an object file (xdp_prog=), loads it,
// attaches it by netlink and puts its sockets into the map "xsks_map". Without it the driver takes every frame of the
// queue, and with them the control connection.
//
//   steer_file ─▶ /proc/self/fd/N ─▶ net_af_xdp: load, attach ─▶ hold_program: the same program, held by a bpf_link
//
// Held by a link, the program goes when this process does, and without the privileges that it took to attach it. Set-up only.
#pragma once

#include <string>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "xdp/steer_config.h"

namespace onehop::xdp {

/// steer_file is a file in memory with the program, told which frames are ours. Syscalls: memfd_create, write.
[[nodiscard]] Result<Fd> steer_file(const onehop_steer_config& frames);

/// path_of names an open file for a library in this process that wants a path.
[[nodiscard]] std::string path_of(const Fd& file);

/// hold_program replaces a netlink attachment of the steering program on that interface by a link, which it returns. For a
/// moment between the two the kernel gets all frames. Error: 9. Syscalls: bpf, socket, sendto, recvmsg.
[[nodiscard]] Result<Fd> hold_program(int ifindex, const std::string& interface);

}  // namespace onehop::xdp
