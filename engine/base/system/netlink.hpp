// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// NetlinkSocket: a small netlink socket over libmnl, for dumps and for subscriptions. No caches.
#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "engine/base/result.hpp"

struct mnl_socket;

namespace onehop {

class NetlinkSocket {
 public:
  /// open binds a socket of `family` with multicast groups. Syscalls: socket, bind, setsockopt.
  [[nodiscard]] static Result<NetlinkSocket> open(int family,
                                                  std::span<const unsigned> groups = {});

  /// request sends one message and hands each reply to `on_message`; an error names `attempt`. It
  /// may block while the kernel holds rtnl_lock: never on the engine core. Syscalls: sendto,
  /// recvmsg.
  [[nodiscard]] Result<void> request(nlmsghdr* message,
                                     const std::function<void(const nlmsghdr*)>& on_message,
                                     const char* attempt = "ask the kernel by netlink");

  /// receive_pending hands over what subscriptions delivered, without blocking. False: the socket
  /// was full, and others of them are lost (netlink(7), ENOBUFS). Syscalls: recvmsg.
  [[nodiscard]] bool receive_pending(const std::function<void(const nlmsghdr*)>& on_message);

  [[nodiscard]] int fd() const noexcept;

 private:
  struct Closer {
    void operator()(mnl_socket* socket) const noexcept;
  };
  std::unique_ptr<mnl_socket, Closer> socket_;
  std::uint32_t sequence_ = 0;
};

}  // namespace onehop
