// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/system/interface.hpp"

#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "engine/base/system/netlink_message.hpp"

namespace onehop {

namespace {
constexpr std::size_t stack_depth_max = 8;  // the kernel's own limit for nested devices
// Of rtnl_link_stats64. Kernels append to that struct, so only this member is read.
constexpr std::size_t tx_dropped_at = offsetof(rtnl_link_stats64, tx_dropped);
// Of <linux/netdev.h> (since 6.3), which older headers lack.
constexpr const char* netdev_family = "netdev";
constexpr std::uint8_t netdev_cmd_dev_get = 1;
constexpr int netdev_a_dev_ifindex = 1, netdev_a_dev_xdp_features = 3;
constexpr std::uint64_t netdev_xdp_act_xsk_zerocopy = 8;
}  // namespace

bool is_stacked_kind(std::string_view kind) noexcept {
  constexpr std::array<std::string_view, 10> kinds{
      "macvlan", "macvtap", "vlan", "ipvlan", "ipvtap", "bridge", "bond", "team", "vrf", "macsec"};
  return std::ranges::find(kinds, kind) != kinds.end();
}

std::optional<Interface> parse_interface(std::span<const std::byte> message) {
  ifinfomsg family;
  const auto attributes = message_body(message, RTM_NEWLINK, family);
  if (!attributes || family.ifi_index <= 0) return std::nullopt;
  const unsigned flags = family.ifi_flags;
  const bool is_up = (flags & IFF_UP) != 0;
  Interface out{
      .ifindex = family.ifi_index,
      .is_up = is_up,
      .is_running = is_up && (flags & IFF_RUNNING) != 0,
      .has_carrier = is_up && (flags & IFF_LOWER_UP) != 0,
      .has_neighbours = (flags & (IFF_LOOPBACK | IFF_NOARP | IFF_POINTOPOINT)) == 0,
      .is_loopback = (flags & IFF_LOOPBACK) != 0,
  };
  int lower_ifindex = 0;
  bool is_lower_elsewhere = false, is_whole = true;
  is_whole &= each_attribute(*attributes, [&](int type, std::span<const std::byte> value) {
    if (type == IFLA_IFNAME) out.name = read_text(value);
    if (type == IFLA_ADDRESS && value.size() == out.mac.size()) read_value(value, out.mac);
    if (type == IFLA_MTU) read_value(value, out.mtu_bytes);
    if (type == IFLA_TXQLEN) read_value(value, out.tx_queue_len);
    if (type == IFLA_NUM_RX_QUEUES) read_value(value, out.rx_queues);
    if (type == IFLA_LINK) read_value(value, lower_ifindex);
    if (type == IFLA_LINK_NETNSID) is_lower_elsewhere = true;
    if (std::uint64_t dropped = 0; type == IFLA_STATS64 && value.size() > tx_dropped_at &&
                                   read_value(value.subspan(tx_dropped_at), dropped))
      out.tx_dropped_total = dropped;
    if (type != IFLA_LINKINFO) return;
    is_whole &= each_attribute(value, [&](int inner, std::span<const std::byte> text) {
      if (inner == IFLA_INFO_KIND) out.kind = read_text(text);
    });
  });
  if (!is_whole) return std::nullopt;
  // A veth names its peer as IFLA_LINK, which is no lower device.
  if (is_stacked_kind(out.kind) && !is_lower_elsewhere && lower_ifindex > 0 &&
      lower_ifindex != out.ifindex)
    out.lower_ifindex = lower_ifindex;
  return out;
}

Result<Interface> read_interface(NetlinkSocket& socket, int ifindex, const std::string& name) {
  NetlinkRequest<ifinfomsg> request{RTM_GETLINK, 0, {.ifi_index = ifindex}};
  if (ifindex == 0) ::mnl_attr_put_strz(request, IFLA_IFNAME, name.c_str());
  std::optional<Interface> found;
  const Result<void> rc = socket.request(request, [&](const nlmsghdr* message) {
    if (auto interface = parse_interface(bytes_of(message))) found = std::move(interface);
  });
  if (rc && found && (ifindex == 0 || found->ifindex == ifindex)) return *std::move(found);
  return Error{ExitCode::io_unavailable,
               "read interface " + (ifindex == 0 ? name : std::to_string(ifindex)),
               rc ? "the kernel's answer is not about it" : rc.error().cause,
               "`ip link` lists the interfaces", rc ? 0 : rc.error().errno_value};
}

Result<Interface> read_interface(int ifindex) {
  ONEHOP_TRY(socket, NetlinkSocket::open(NETLINK_ROUTE));
  return read_interface(socket, ifindex);
}

Result<std::vector<Interface>> read_stack(int ifindex) {
  std::vector<Interface> stack;
  for (int next = ifindex; next != 0 && stack.size() < stack_depth_max;) {
    ONEHOP_TRY(interface, read_interface(next));
    next = interface.lower_ifindex;
    stack.push_back(std::move(interface));
  }
  return stack;
}

bool is_software(const Interface& interface) {
  const auto below = read_stack(interface.lower_ifindex);
  if (!below) return true;
  const Interface& bottom = below.value().empty() ? interface : below.value().back();
  // Every rtnetlink kind is made of software; only bond and team repeat what members negotiated.
  return bottom.is_loopback ||
         (!bottom.kind.empty() && bottom.kind != "bond" && bottom.kind != "team");
}

Result<InterfaceFacts> read_interface_facts(const std::string& name) {
  if (name.empty() || name.size() >= IFNAMSIZ)
    return Error{ExitCode::usage, "use interface '" + name + "'", "not an interface name",
                 "name one with --iface"};
  ONEHOP_TRY(netlink, NetlinkSocket::open(NETLINK_ROUTE));
  ONEHOP_TRY(interface, read_interface(netlink, 0, name));
  InterfaceFacts facts{std::move(interface), {}, false};
  const EthtoolSocket socket{facts.name};
  // The current channel count, where the device says it: rtnetlink gives only what was allocated.
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  if (socket.ask(&channels) && channels.rx_count + channels.combined_count > 0)
    facts.rx_queues = channels.rx_count + channels.combined_count;
  facts.rx_queues = std::max(facts.rx_queues, 1U);
  ethtool_value gro{.cmd = ETHTOOL_GGRO, .data = 0};
  facts.has_gro = socket.ask(&gro) && gro.data != 0;
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  if (socket.ask(&driver))
    facts.driver.assign(driver.driver, ::strnlen(driver.driver, sizeof driver.driver));
  return facts;
}

std::optional<bool> read_has_zero_copy(int ifindex) {
  auto opened = NetlinkSocket::open(NETLINK_GENERIC);
  if (!opened) return std::nullopt;
  NetlinkSocket& socket = opened.value();
  // The value of the attribute `wanted` of an answer of type `id`.
  const auto ask = [&](std::uint16_t id, nlmsghdr* request, int wanted, auto value) {
    std::optional<decltype(value)> found;
    const auto rc = socket.request(request, [&](const nlmsghdr* message) {
      genlmsghdr header;
      const auto attributes = message_body(bytes_of(message), id, header);
      if (!attributes) return;
      (void)each_attribute(*attributes, [&](int type, std::span<const std::byte> bytes) {
        if (type == wanted && read_value(bytes, value)) found = value;
      });
    });
    return rc ? found : std::nullopt;
  };
  NetlinkRequest<genlmsghdr> find{GENL_ID_CTRL, 0, {.cmd = CTRL_CMD_GETFAMILY, .version = 1}};
  ::mnl_attr_put_strz(find, CTRL_ATTR_FAMILY_NAME, netdev_family);
  const auto family = ask(GENL_ID_CTRL, find, CTRL_ATTR_FAMILY_ID, std::uint16_t{});
  if (!family) return std::nullopt;
  NetlinkRequest<genlmsghdr> get{*family, 0, {.cmd = netdev_cmd_dev_get, .version = 1}};
  ::mnl_attr_put_u32(get, netdev_a_dev_ifindex, static_cast<std::uint32_t>(ifindex));
  const auto features = ask(*family, get, netdev_a_dev_xdp_features, std::uint64_t{});
  if (!features) return std::nullopt;
  return (*features & netdev_xdp_act_xsk_zerocopy) != 0;
}

QueueScope tx_scope(const Interface& interface, bool is_zero_copy) noexcept {
  if (is_zero_copy) return QueueScope::driver;
  if (is_stacked_kind(interface.kind)) return QueueScope::lower_queue;
  // Hardware in copy mode: the frame's buffer is freed when the driver has sent it. A device made
  // of software (veth, tun, dummy) frees it on hand-over: its completions tell nothing.
  return interface.kind.empty() ? QueueScope::driver : QueueScope::own_ring;
}

EthtoolSocket::EthtoolSocket(std::string_view name)
    : name_{name}, fd_{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)} {}

bool EthtoolSocket::ask(void* command) const noexcept {
  ifreq request{};
  std::memcpy(request.ifr_name, name_.data(), std::min(name_.size(), sizeof request.ifr_name - 1));
  request.ifr_data = static_cast<char*>(command);
  return ::ioctl(fd_.get(), SIOCETHTOOL, &request) == 0;
}

// An ioctl and not sysfs: a mounted sysfs shows the namespace it was mounted in.
BytesPerSecond read_link_rate(const std::string& name) {
  // The struct ends in a flexible array: three masks of at most 127 words.
  alignas(ethtool_link_settings) std::array<std::byte, sizeof(ethtool_link_settings) + 3 * 127 * 4>
      buffer{};
  auto* settings = reinterpret_cast<ethtool_link_settings*>(buffer.data());
  settings->cmd = ETHTOOL_GLINKSETTINGS;
  const EthtoolSocket socket{name};
  if (!socket.ask(settings)) return {};
  // First the kernel tells how many words its masks have (negated), then it answers.
  if (settings->link_mode_masks_nwords >= 0) return {};
  settings->link_mode_masks_nwords = static_cast<std::int8_t>(-settings->link_mode_masks_nwords);
  settings->cmd = ETHTOOL_GLINKSETTINGS;
  if (!socket.ask(settings)) return {};
  const std::uint32_t mbps = settings->speed;
  constexpr std::uint32_t mbps_max = 1'600'000;  // SPEED_UNKNOWN is all ones
  return mbps == 0 || mbps > mbps_max ? BytesPerSecond{} : mbit_per_s(mbps);
}

}  // namespace onehop
