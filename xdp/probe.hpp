// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What an interface is, as far as AF_XDP has to know before it tries. Whether a mode works is found
// by trying it (steer, xsk_socket); not listed. Never on the engine core.
#pragma once

#include <string>

#include "engine/base/interface.hpp"
#include "engine/base/telemetry.hpp"

namespace onehop::xdp {

/// InterfaceFacts: an interface and what ethtool says of it. `rx_queues` is the current number.
struct InterfaceFacts : Interface {
  std::string driver;    ///< "virtio_net", "igb", ...; empty where the device does not say
  bool has_gro = false;  ///< generic receive offload: several datagrams at once
};

/// read_interface asks rtnetlink and ethtool. It may block while the kernel holds rtnl_lock.
/// Syscalls: socket, bind, sendto, recvmsg, ioctl.
[[nodiscard]] Result<InterfaceFacts> read_interface(const std::string& name);

/// tx_scope says how far down the completions of such a device see.
[[nodiscard]] QueueScope tx_scope(const InterfaceFacts& facts, bool is_zero_copy);

}  // namespace onehop::xdp
