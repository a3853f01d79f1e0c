// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// UdpReservation holds the address and port of a raw port (AF_XDP, DPDK) in the kernel: a second
// program gets EADDRINUSE instead of a silent share, port 0 is resolved, and the kernel answers
// stray frames with silence instead of port unreachable. A socket filter drops what reaches it, so
// nothing piles up. Set-up only.
#pragma once

#include <cstdint>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/base/system/address.hpp"

namespace onehop {

class UdpReservation {
 public:
  UdpReservation() = default;

  /// bind reserves `local`, an IPv4 or IPv6 address of this host; port 0 takes what the kernel
  /// gives. Syscalls: socket, setsockopt, bind, getsockname.
  [[nodiscard]] static Result<UdpReservation> bind(const Endpoint& local);

  /// share_port lets a socket that does the same be bound to the address. Syscalls: setsockopt.
  void share_port() const noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  /// address is the bound address with its port.
  [[nodiscard]] const Endpoint& address() const noexcept { return address_; }
  [[nodiscard]] bool is_ipv6() const noexcept { return address_.address.is_v6; }
  [[nodiscard]] std::uint16_t port() const noexcept { return address_.port; }

 private:
  Fd fd_;
  Endpoint address_;
};

}  // namespace onehop
