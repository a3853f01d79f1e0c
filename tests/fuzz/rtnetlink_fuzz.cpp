// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// N5: datagrams of rtnetlink come from the kernel, and a module may fill a message as it likes. A
// message is walked within its datagram, an attribute within its message, and whatever the parsers
// accept lies within bounds.
#include <linux/gen_stats.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <array>
#include <cstring>
#include <random>

#include "control/link/qdisc_message.hpp"
#include "control/session/channel/route.hpp"
#include "engine/base/check.hpp"
#include "engine/base/system/interface.hpp"
#include "engine/base/system/netlink_message.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/netlink_builder.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

namespace {

using Builder = fuzz::NetlinkBuilder;

void put_link(Builder& b, std::mt19937_64& random) {
  constexpr std::array kinds{"veth", "macvlan", "vlan", "bond", "wireguard"};
  b.head(RTM_NEWLINK, ifinfomsg{.ifi_family = 0,
                                .__ifi_pad = 0,
                                .ifi_type = 1,
                                .ifi_index = static_cast<int>(random() % 5),
                                .ifi_flags = static_cast<unsigned>(random()),
                                .ifi_change = 0});
  b.put_text(IFLA_IFNAME, "wlan0");
  b.maybe({IFLA_MTU, IFLA_TXQLEN, IFLA_NUM_RX_QUEUES, IFLA_LINK, IFLA_LINK_NETNSID}, 4);
  b.maybe({IFLA_ADDRESS}, 6);
  b.maybe({IFLA_STATS64}, random() % (2 * sizeof(rtnl_link_stats64)));
  b.nest(IFLA_LINKINFO, [&] { b.put_text(IFLA_INFO_KIND, kinds[random() % kinds.size()]); });
}

void put_neighbour(Builder& b, std::mt19937_64& random) {
  const bool is_v6 = random() % 2 == 0;
  b.head(random() % 4 == 0 ? RTM_DELNEIGH : RTM_NEWNEIGH,
         ndmsg{.ndm_family = static_cast<unsigned char>(is_v6 ? AF_INET6 : AF_INET),
               .ndm_pad1 = 0,
               .ndm_pad2 = 0,
               .ndm_ifindex = static_cast<int>(random() % 5),
               .ndm_state = static_cast<std::uint16_t>(random()),
               .ndm_flags = 0,
               .ndm_type = 0});
  b.maybe({NDA_DST}, is_v6 ? 16 : 4);
  b.maybe({NDA_LLADDR}, 6);
}

void put_route(Builder& b, std::mt19937_64& random) {
  const std::size_t address_bytes = random() % 2 == 0 ? 16 : 4;
  b.head(RTM_NEWROUTE, rtmsg{.rtm_family = AF_INET});
  b.maybe({RTA_OIF, RTA_TABLE}, 4);
  b.maybe({RTA_GATEWAY, RTA_PREFSRC, RTA_DST}, address_bytes);
}

void put_qdisc(Builder& b, std::mt19937_64& random) {
  constexpr std::array kinds{"tbf", "bfifo", "pfifo", "pfifo_fast", "fq_codel", "htb", "noqueue"};
  b.head(RTM_NEWQDISC, tcmsg{.tcm_family = 0,
                             .tcm__pad1 = 0,
                             .tcm__pad2 = 0,
                             .tcm_ifindex = static_cast<int>(random() % 5),
                             .tcm_handle = static_cast<unsigned>(random()),
                             .tcm_parent = TC_H_ROOT,
                             .tcm_info = 0});
  b.put_text(TCA_KIND, kinds[random() % kinds.size()]);
  b.nest(TCA_STATS2, [&] {
    b.maybe({TCA_STATS_BASIC}, sizeof(gnet_stats_basic));
    b.maybe({TCA_STATS_QUEUE}, sizeof(gnet_stats_queue));
  });
  const std::size_t options_bytes = random() % 2 == 0 ? 4 : 36;
  if (random() % 2 == 0)
    b.put(TCA_OPTIONS, options_bytes);
  else
    b.nest(TCA_OPTIONS, [&] { b.maybe({1, 2, 3}, options_bytes); });
}

bool is_link(std::span<const std::byte> message) {
  const auto link = parse_interface(message);
  if (!link) return false;
  ONEHOP_CHECK(link->ifindex > 0);
  ONEHOP_CHECK(link->lower_ifindex >= 0);
  ONEHOP_CHECK(link->lower_ifindex != link->ifindex);
  ONEHOP_CHECK(link->name.size() < message.size());
  ONEHOP_CHECK(link->is_up || !link->has_carrier);
  return true;
}

bool is_neighbour(std::span<const std::byte> message) {
  const auto neighbour = session::parse_neighbour(message);
  if (!neighbour) return false;
  ONEHOP_CHECK(!neighbour->address.text().empty());
  return true;
}

bool is_route(std::span<const std::byte> message) {
  const auto route = session::parse_route(message, false);
  ONEHOP_CHECK(route.has_value() == session::parse_route(message, true).has_value());
  if (!route) return false;
  if (route->gateway) ONEHOP_CHECK(!route->gateway->is_v6);
  ONEHOP_CHECK(!session::route_text(*route).empty());
  return true;
}

bool is_qdisc(std::span<const std::byte> message) {
  const auto qdisc = link::parse_qdisc(message);
  if (!qdisc) return false;
  const auto queue = link::pick_queue({&*qdisc, 1}, qdisc->ifindex, Instant{1s}, 1514, 1000);
  if (!queue) return true;
  ONEHOP_CHECK(queue->occupancy >= Bytes{0});
  ONEHOP_CHECK(queue->drained_total >= Bytes{0});
  ONEHOP_CHECK(queue->capacity >= Bytes{0});
  return true;
}

}  // namespace

/// A datagram of up to four messages, of which one may have a length that it has not.
std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  std::size_t end = 0, last = 0;
  for (std::uint64_t left = 1 + random() % 4; left > 0; --left) {
    last = end;
    Builder b{random, out.subspan(end)};
    switch (random() % 4) {
      case 0: put_link(b, random); break;
      case 1: put_neighbour(b, random); break;
      case 2: put_route(b, random); break;
      default: put_qdisc(b, random); break;
    }
    end += b.end();
  }
  constexpr std::array<std::uint32_t, 8> lengths{0,          1,          15,         16,
                                                 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff};
  if (random() % 8 == 0)
    std::memcpy(out.data() + last, &lengths[random() % lengths.size()], sizeof lengths[0]);
  return end;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span datagram{reinterpret_cast<const std::byte*>(data), size};
  std::size_t seen = 0, taken = 0;
  const std::size_t whole = each_message(datagram, [&](std::span<const std::byte> message) {
    ONEHOP_CHECK(message.size() >= sizeof(nlmsghdr));
    ONEHOP_CHECK(message.data() >= datagram.data());
    ONEHOP_CHECK(message.data() + message.size() <= datagram.data() + size);
    seen += message.size();
    const int kinds =
        is_link(message) + is_neighbour(message) + is_route(message) + is_qdisc(message);
    ONEHOP_CHECK(kinds <= 1);  // a message is of one kind
    taken += static_cast<std::size_t>(kinds);
  });
  ONEHOP_CHECK(seen <= whole);
  ONEHOP_CHECK(whole <= size);
  if (taken != 0) ++fuzz::accepted_total;
  return 0;
}
