// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "xdp/probe.hpp"

#include <linux/ethtool.h>
#include <linux/if.h>

#include <algorithm>

namespace onehop::xdp {

namespace {

// The current channel count, where the device says it: rtnetlink gives only what was allocated.
void read_ethtool(InterfaceFacts& facts) {
  const EthtoolSocket socket{facts.name};
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  if (socket.ask(&channels) && channels.rx_count + channels.combined_count > 0)
    facts.rx_queues = channels.rx_count + channels.combined_count;
  ethtool_value gro{.cmd = ETHTOOL_GGRO, .data = 0};
  facts.has_gro = socket.ask(&gro) && gro.data != 0;
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (socket.ask(&driver))
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
  // of software (veth, tun, dummy) frees it on hand-over: its completions tell nothing.
  return facts.kind.empty() ? QueueScope::driver : QueueScope::own_ring;
}

}  // namespace onehop::xdp
