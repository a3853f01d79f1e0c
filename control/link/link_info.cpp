// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/link_info.hpp"

#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "control/link/qdisc_message.hpp"
#include "engine/base/fd.hpp"
#include "engine/base/netlink.hpp"

namespace onehop::link {

namespace {
constexpr int stack_depth_max = 8;  // the kernel's own limit for nested devices

Result<LinkMessage> ask_link(NetlinkSocket& socket, int ifindex) {
  alignas(NLMSG_ALIGNTO) std::array<char, 256> buffer{};
  nlmsghdr* request = mnl_nlmsg_put_header(buffer.data());
  request->nlmsg_type = RTM_GETLINK;
  request->nlmsg_flags = NLM_F_REQUEST;
  auto* family = static_cast<ifinfomsg*>(mnl_nlmsg_put_extra_header(request, sizeof(ifinfomsg)));
  family->ifi_family = AF_UNSPEC;
  family->ifi_index = ifindex;
  std::optional<LinkMessage> found;
  const Result<void> rc = socket.request(request, [&](const nlmsghdr* message) {
    if (auto link = parse_link({reinterpret_cast<const std::byte*>(message), message->nlmsg_len})) found = std::move(link);
  });
  if (!rc) {
    Error error = rc.error();
    error.attempt = "read interface " + std::to_string(ifindex);
    return error;
  }
  if (!found || found->ifindex != ifindex)
    return Error{.attempt = "read interface " + std::to_string(ifindex), .cause = "the kernel's answer is not about it"};
  return *std::move(found);
}

}  // namespace

// An ioctl and not sysfs: a mounted sysfs shows the namespace it was mounted in.
BytesPerSecond read_link_rate(const std::string& name) {
  // The struct ends in a flexible array: three masks of at most 127 words.
  alignas(ethtool_link_settings) std::array<std::byte, sizeof(ethtool_link_settings) + 3 * 127 * 4> buffer{};
  auto* settings = reinterpret_cast<ethtool_link_settings*>(buffer.data());
  settings->cmd = ETHTOOL_GLINKSETTINGS;
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), std::min(name.size(), sizeof request.ifr_name - 1));
  request.ifr_data = reinterpret_cast<char*>(settings);
  const Fd fd{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  if (!fd.is_open() || ::ioctl(fd.get(), SIOCETHTOOL, &request) != 0) return {};
  // First the kernel tells how many words its masks have (negated), then it answers.
  if (settings->link_mode_masks_nwords >= 0) return {};
  settings->link_mode_masks_nwords = static_cast<std::int8_t>(-settings->link_mode_masks_nwords);
  settings->cmd = ETHTOOL_GLINKSETTINGS;
  if (::ioctl(fd.get(), SIOCETHTOOL, &request) != 0) return {};
  const std::uint32_t mbps = settings->speed;
  constexpr std::uint32_t mbps_max = 1'600'000;  // SPEED_UNKNOWN is all ones
  return mbps == 0 || mbps > mbps_max ? BytesPerSecond{} : mbit_per_s(mbps);
}

bool is_stacked_kind(const std::string& kind) noexcept {
  constexpr std::array<std::string_view, 5> kinds{"macvlan", "macvtap", "ipvlan", "ipvtap", "vlan"};
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

Result<LinkInfo> read_link_info(int ifindex) {
  ONEHOP_TRY(socket, NetlinkSocket::open(NETLINK_ROUTE));
  ONEHOP_TRY(link, ask_link(socket, ifindex));
  LinkInfo out{.ifindex = link.ifindex, .name = link.name, .kind = link.kind, .mtu_bytes = link.mtu_bytes,
               .tx_queue_len = link.tx_queue_len, .tx_dropped_total = link.tx_dropped_total, .is_running = link.is_running};
  const bool is_stacked = is_stacked_kind(link.kind);
  if (is_stacked && !link.is_lower_elsewhere) out.lower_ifindex = link.lower_ifindex;
  out.rate = read_link_rate(link.name);
  LinkMessage bottom = link;
  for (int depth = 0; depth < stack_depth_max && is_stacked_kind(bottom.kind); ++depth) {
    if (bottom.is_lower_elsewhere || bottom.lower_ifindex == 0) break;  // unseen: the claim counts as virtual
    ONEHOP_TRY(below, ask_link(socket, bottom.lower_ifindex));
    bottom = below;
  }
  // Every rtnetlink kind is made of software; bond and team alone repeat what their members negotiated.
  out.is_virtual = bottom.is_loopback || (!bottom.kind.empty() && bottom.kind != "bond" && bottom.kind != "team");
  return out;
}

}  // namespace onehop::link
