// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Interface: what the kernel reports of a network interface (RTM_GETLINK), and what its driver
// claims (ethtool). Never on the engine core: the kernel may hold rtnl_lock for ms.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/system/address.hpp"
#include "engine/base/system/netlink.hpp"
#include "engine/base/telemetry.hpp"
#include "engine/base/units.hpp"

namespace onehop {

struct Interface {
  int ifindex = 0;
  std::string name;
  std::string kind;  ///< "veth", "macvlan", ...; empty for hardware
  MacAddress mac{};
  std::uint32_t mtu_bytes = 0;
  std::uint32_t tx_queue_len = 0;
  std::uint32_t rx_queues = 1;  ///< allocated by the driver
  /// The device below a stacked one; 0: none, several (bridge, bond), or in another namespace.
  int lower_ifindex = 0;
  /// Frames that it dropped, of all programs, by its driver's count; absent if it does not count.
  std::optional<std::uint64_t> tx_dropped_total;
  bool is_up = false;          ///< administratively
  bool is_running = false;     ///< up, and in operation
  bool has_carrier = false;    ///< up, and with a carrier (also while not yet in operation)
  bool has_neighbours = true;  ///< false: loopback, tunnels: no address to resolve
  bool is_loopback = false;
};

/// is_stacked_kind: its frames go through another device's queue, and count as sent when they left.
[[nodiscard]] bool is_stacked_kind(std::string_view kind) noexcept;

/// parse_interface reads an RTM_NEWLINK message; nullopt: another one, or malformed. Pure.
[[nodiscard]] std::optional<Interface> parse_interface(std::span<const std::byte> message);

/// read_interface asks for an interface by index, or by name where `ifindex` is 0. Error:
/// io_unavailable. Syscalls: sendto, recvmsg; without a socket also socket, bind.
[[nodiscard]] Result<Interface> read_interface(NetlinkSocket& socket, int ifindex,
                                               const std::string& name = {});
[[nodiscard]] Result<Interface> read_interface(int ifindex);
/// read_stack is an interface and what lies below it in this namespace, from the top.
[[nodiscard]] Result<std::vector<Interface>> read_stack(int ifindex);

/// is_software: what its driver claims says nothing of a link. True for veth, bridge, tun, and for
/// devices stacked on one or on an unknown one. Syscalls: as read_interface for each device.
[[nodiscard]] bool is_software(const Interface& interface);

/// InterfaceFacts: an interface and what ethtool reports of it. `rx_queues` is the current number.
struct InterfaceFacts : Interface {
  std::string driver;    ///< "virtio_net", "igb", ...; empty where the device does not say
  bool has_gro = false;  ///< generic receive offload: several datagrams at once
};

/// read_interface_facts asks rtnetlink and ethtool. It may block while the kernel holds rtnl_lock.
/// Errors: usage, io_unavailable. Syscalls: socket, bind, sendto, recvmsg, ioctl.
[[nodiscard]] Result<InterfaceFacts> read_interface_facts(const std::string& name);

/// read_has_zero_copy: whether the driver of `ifindex` reports AF_XDP zero-copy; nullopt if the
/// kernel does not report it (before 6.3). Syscalls: socket, bind, sendto, recvmsg.
[[nodiscard]] std::optional<bool> read_has_zero_copy(int ifindex);

/// tx_scope says how far down the AF_XDP completions of such a device reach.
[[nodiscard]] QueueScope tx_scope(const Interface& interface, bool is_zero_copy) noexcept;

/// EthtoolSocket asks the driver of an interface, by a struct of linux/ethtool.h whose `cmd` is
/// set. ask: false if the driver does not answer. Syscalls: socket; ioctl.
class EthtoolSocket {
 public:
  explicit EthtoolSocket(std::string_view name);
  [[nodiscard]] bool ask(void* command) const noexcept;

 private:
  std::string name_;
  Fd fd_;
};

/// read_link_rate is the speed that the driver of `name` claims, or 0. Syscalls: socket, ioctl.
[[nodiscard]] BytesPerSecond read_link_rate(const std::string& name);

}  // namespace onehop
