// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// read_link_info: what an interface is, what it claims, and what lies below it. Setup code and the plane; not on the
// engine core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop::link {

struct LinkInfo {
  int ifindex = 0;
  std::string name;
  std::string kind;               ///< "veth", "macvlan", ...; empty for hardware
  std::uint32_t mtu_bytes = 0;
  std::uint32_t tx_queue_len = 0;
  int lower_ifindex = 0;          ///< of a stacked device whose lower one is in this namespace; else 0
  std::optional<std::uint64_t> tx_dropped_total;  ///< frames that it threw away, of all programs, by its driver's count
  BytesPerSecond rate{};          ///< as the driver claims; 0: unknown
  bool is_running = false;        ///< up, and with a carrier
  bool is_virtual = false;        ///< the claim is worth nothing (veth, bridge, tun, or stacked on such a one)
};

/// read_link_info fails where there is no such interface. Syscalls: socket, bind, sendto, recvmsg, ioctl.
[[nodiscard]] Result<LinkInfo> read_link_info(int ifindex);

/// read_link_rate is the speed that the driver of interface `name` claims now; 0: unknown. Syscalls: socket, ioctl.
[[nodiscard]] BytesPerSecond read_link_rate(const std::string& name);

/// is_stacked_kind: `kind` passes its frames on to the device named by IFLA_LINK.
[[nodiscard]] bool is_stacked_kind(const std::string& kind) noexcept;

}  // namespace onehop::link
