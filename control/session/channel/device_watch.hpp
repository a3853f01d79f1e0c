// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DeviceWatch reports when an interface was created anew. A socket that is bound to one (--iface)
// holds its number, and the next interface of that name (a group of Wi-Fi Direct, an adapter that
// was plugged in again) has another. It sleeps until the kernel reports a change of links. Session
// thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "control/session/channel/channel.hpp"
#include "engine/base/system/netlink.hpp"

namespace onehop::session {

class DeviceWatch {
 public:
  /// Syscalls: those of NetlinkSocket::open; fcntl, ioctl.
  [[nodiscard]] static Result<std::unique_ptr<DeviceWatch>> open(asio::io_context& io,
                                                                 const std::string& interface) {
    constexpr std::array<unsigned, 1> groups{RTNLGRP_LINK};
    ONEHOP_TRY(links, NetlinkSocket::open(NETLINK_ROUTE, groups));
    const int fd = ::fcntl(links.fd(), F_DUPFD_CLOEXEC, 0);  // Asio closes its own
    if (fd < 0) return errno_error(ExitCode::internal_error, "watch interface " + interface);
    return std::unique_ptr<DeviceWatch>{new DeviceWatch{io, std::move(links), fd, interface}};
  }

  /// wait_anew returns true when the interface exists under another number than before, and false
  /// after close().
  [[nodiscard]] Task<bool> wait_anew() {
    for (;;) {
      boost::system::error_code error;
      co_await events_.async_wait(asio::posix::stream_descriptor::wait_read,
                                  asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return false;
      (void)links_.receive_pending([](const nlmsghdr*) {});
      const unsigned ifindex = ::if_nametoindex(interface_.c_str());
      if (ifindex != 0 && std::exchange(ifindex_, ifindex) != ifindex) co_return true;
    }
  }
  void close() {
    boost::system::error_code ignored;
    events_.close(ignored);
  }

 private:
  DeviceWatch(asio::io_context& io, NetlinkSocket links, int fd, const std::string& interface)
      : links_{std::move(links)},
        events_{io, fd},
        interface_{interface},
        ifindex_{::if_nametoindex(interface.c_str())} {}

  NetlinkSocket links_;
  asio::posix::stream_descriptor events_;
  const std::string interface_;
  unsigned ifindex_;
};

}  // namespace onehop::session
