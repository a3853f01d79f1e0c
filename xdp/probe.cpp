// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "xdp/probe.hpp"

#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "engine/base/fd.hpp"

namespace onehop::xdp {

namespace {

ifreq request_for(const std::string& name) {
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), std::min(name.size(), sizeof request.ifr_name - 1));
  return request;
}

// The current channel count, where the device says it: rtnetlink gives only what was allocated.
void read_ethtool(InterfaceFacts& facts) {
  const Fd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  ifreq request = request_for(facts.name);
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  request.ifr_data = reinterpret_cast<char*>(&channels);
  if (::ioctl(socket.get(), SIOCETHTOOL, &request) == 0 &&
      channels.rx_count + channels.combined_count > 0)
    facts.rx_queues = channels.rx_count + channels.combined_count;
  ethtool_value gro{.cmd = ETHTOOL_GGRO, .data = 0};
  request.ifr_data = reinterpret_cast<char*>(&gro);
  facts.has_gro = ::ioctl(socket.get(), SIOCETHTOOL, &request) == 0 && gro.data != 0;
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  request.ifr_data = reinterpret_cast<char*>(&driver);
  if (::ioctl(socket.get(), SIOCETHTOOL, &request) == 0)
    facts.driver.assign(driver.driver, ::strnlen(driver.driver, sizeof driver.driver));
}

}  // namespace

Result<InterfaceFacts> read_interface(const std::string& name) {
  if (name.empty() || name.size() >= IFNAMSIZ)
    return Error{ExitCode::usage, "use interface '" + name + "'", "not an interface name",
                 "name one with --iface"};
  ONEHOP_TRY(netlink, NetlinkSocket::open(NETLINK_ROUTE));
  ONEHOP_TRY(interface, onehop::read_interface(netlink, 0, name));
  InterfaceFacts facts;
  static_cast<Interface&>(facts) = std::move(interface);
  read_ethtool(facts);
  facts.rx_queues = std::max(facts.rx_queues, 1U);
  return facts;
}

QueueScope tx_scope(const InterfaceFacts& facts, bool is_zero_copy) {
  if (is_zero_copy) return QueueScope::driver;
  if (is_stacked_kind(facts.kind)) return QueueScope::lower_queue;
  // Hardware in copy mode: the frame's buffer is freed when the driver has sent it. A device made
  // of software (veth, tun, dummy) frees it on hand-over, so its completions tell nothing about the
  // link.
  return facts.kind.empty() ? QueueScope::driver : QueueScope::own_ring;
}

bool is_running(const std::string& name) {
  const Fd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  ifreq request = request_for(name);
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return false;
  return (request.ifr_flags & IFF_UP) != 0 && (request.ifr_flags & IFF_RUNNING) != 0;
}

}  // namespace onehop::xdp
