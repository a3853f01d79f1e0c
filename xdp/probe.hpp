// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What an interface is, as far as AF_XDP has to know before it tries. Whether a mode works is found
// by trying it (steer, xsk_socket); a list of drivers would be out of date. Called at set-up and by
// `onehop doctor`, never by the engine core.
#pragma once

#include <string>

#include "engine/base/interface.hpp"
#include "engine/base/telemetry.hpp"

namespace onehop::xdp {

/// InterfaceFacts: an interface and what ethtool says of it. `rx_queues` is the current number, not
/// what the device could have.
struct InterfaceFacts : Interface {
  std::string driver;    ///< "virtio_net", "igb", ...; empty where the device does not say
  bool has_gro = false;  ///< generic receive offload: several datagrams at once
};

/// read_interface asks rtnetlink and ethtool. It may block while the kernel holds rtnl_lock.
/// Syscalls: socket, bind, sendto, recvmsg, ioctl.
[[nodiscard]] Result<InterfaceFacts> read_interface(const std::string& name);

/// tx_scope says how far down the completions of such a device see.
[[nodiscard]] QueueScope tx_scope(const InterfaceFacts& facts, bool is_zero_copy);

/// is_running asks again for the carrier: attaching a program bounces the link of some drivers.
/// Syscalls: ioctl.
[[nodiscard]] bool is_running(const std::string& name);

}  // namespace onehop::xdp
