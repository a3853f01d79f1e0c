// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "xdp/probe.hpp"

#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/base/fd.hpp"
#include "engine/base/netlink.hpp"

namespace onehop::xdp {

namespace {

std::string info_kind(const nlattr* link_info) {
  std::string kind;
  const auto on_attribute = [](const nlattr* attribute, void* result) {
    if (mnl_attr_get_type(attribute) == IFLA_INFO_KIND)
      *static_cast<std::string*>(result) = mnl_attr_get_str(attribute);
    return MNL_CB_OK;
  };
  (void)mnl_attr_parse_nested(link_info, on_attribute, &kind);
  return kind;
}

void read_link_message(const nlmsghdr* message, InterfaceFacts& facts) {
  if (message->nlmsg_type != RTM_NEWLINK) return;
  const auto* link = static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(message));
  facts.ifindex = link->ifi_index;
  facts.is_up = (link->ifi_flags & IFF_UP) != 0;
  facts.is_running = (link->ifi_flags & IFF_RUNNING) != 0;
  const auto on_attribute = [](const nlattr* attribute, void* result) {
    auto& into = *static_cast<InterfaceFacts*>(result);
    const int type = mnl_attr_get_type(attribute);
    if (type == IFLA_MTU) into.mtu_bytes = mnl_attr_get_u32(attribute);
    if (type == IFLA_NUM_RX_QUEUES) into.rx_queues = mnl_attr_get_u32(attribute);
    if (type == IFLA_LINKINFO) into.kind = info_kind(attribute);
    return MNL_CB_OK;
  };
  (void)mnl_attr_parse(message, sizeof(ifinfomsg), on_attribute, &facts);
}

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
  if (::ioctl(socket.get(), SIOCETHTOOL, &request) == 0 && channels.rx_count + channels.combined_count > 0)
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
    return Error{ExitCode::usage, "use interface '" + name + "'", "not an interface name", "name one with --iface"};
  InterfaceFacts facts;
  facts.name = name;
  ONEHOP_TRY(netlink, NetlinkSocket::open(NETLINK_ROUTE));
  alignas(nlmsghdr) std::array<char, 256> buffer{};
  nlmsghdr* message = mnl_nlmsg_put_header(buffer.data());
  message->nlmsg_type = RTM_GETLINK;
  message->nlmsg_flags = NLM_F_REQUEST;
  mnl_nlmsg_put_extra_header(message, sizeof(ifinfomsg));
  mnl_attr_put_strz(message, IFLA_IFNAME, name.c_str());
  auto reply = netlink.request(message, [&](const nlmsghdr* link) { read_link_message(link, facts); });
  if (!reply || facts.ifindex == 0) {
    return Error{ExitCode::io_unavailable, "look up interface " + name,
                 reply ? "no such interface" : reply.error().cause, "`ip link` lists the interfaces"};
  }
  read_ethtool(facts);
  facts.rx_queues = std::max(facts.rx_queues, 1U);
  return facts;
}

bool is_stacked(const InterfaceFacts& facts) {
  static constexpr std::array<std::string_view, 10> kinds = {"macvlan", "macvtap", "vlan", "ipvlan", "ipvtap",
                                                             "bridge",  "bond",    "team", "vrf",    "macsec"};
  return std::find(kinds.begin(), kinds.end(), facts.kind) != kinds.end();
}

QueueScope tx_scope(const InterfaceFacts& facts, bool is_zero_copy) {
  if (is_zero_copy) return QueueScope::driver;
  if (is_stacked(facts)) return QueueScope::lower_queue;
  // Hardware in copy mode: the frame's buffer is freed when the driver has sent it. A device made of software (veth,
  // tun, dummy) frees it on hand-over, so its completions tell nothing about the link.
  return facts.kind.empty() ? QueueScope::driver : QueueScope::own_ring;
}

bool is_running(const std::string& name) {
  const Fd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  ifreq request = request_for(name);
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return false;
  return (request.ifr_flags & IFF_UP) != 0 && (request.ifr_flags & IFF_RUNNING) != 0;
}

}  // namespace onehop::xdp
