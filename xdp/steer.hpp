// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The steering program (steer.bpf.c), its XSKMAP and the bpf_link that holds it on the interface.
// The kernel detaches a link when its last descriptor closes, so nothing stays behind, whatever
// kills the process. libxdp's default program and dispatcher do stay behind; we load neither. It
// never replaces a program of others.
//
// DPDK's net_af_xdp is a loader of its own: it takes the path of an object file (xdp_prog=),
// attaches the program by netlink and puts its sockets into the map "xsks_map". Without our file it
// takes every frame of the queue, and with them the control connection.
//
//   steer_file ─▶ /proc/self/fd/N ─▶ net_af_xdp: load, attach ─▶ hold_program: now by a bpf_link
//
// Set-up only; the engine core never calls any of this.
#pragma once

#include <string>

#include "engine/base/system/interface.hpp"
#include "engine/base/system/rights.hpp"
#include "xdp/steer_config.h"

namespace onehop::xdp {

struct SteerOptions {
  onehop_steer_config frames{};  ///< which frames are ours
  bool is_generic = false;       ///< generic XDP; else native
  bool has_fragments = false;    ///< the MTU does not fit one chunk
};

/// attach_steer loads and attaches. It retries for up to two seconds while another onehop's program
/// is still going away; any other program on the interface is an error that names it. Errors:
/// 9, 10. Syscalls: bpf, socket, sendto, recvmsg, fcntl, nanosleep.
[[nodiscard]] Result<SteerFds> attach_steer(const InterfaceFacts& interface,
                                            const SteerOptions& options);

/// steer_frames describes UDP frames to `local`.
[[nodiscard]] onehop_steer_config steer_frames(const Endpoint& local);

/// attached_program: "name (id 12, native)" of an interface, or empty. Syscalls: bpf, socket.
[[nodiscard]] std::string attached_program(int ifindex);

/// steer_file: the program with its constants, in memory. Syscalls: memfd_create, write.
[[nodiscard]] Result<Fd> steer_file(const onehop_steer_config& frames);

/// path_of names an open file for a library in this process that wants a path.
[[nodiscard]] std::string path_of(const Fd& file);

/// hold_program replaces a netlink attachment of the steering program by a link, which it returns:
/// the program then goes when this process does, and without privileges. For a moment between the
/// two the kernel gets all frames. Error: 9. Syscalls: bpf, socket, sendto, recvmsg.
[[nodiscard]] Result<Fd> hold_program(int ifindex, const std::string& interface);

}  // namespace onehop::xdp
