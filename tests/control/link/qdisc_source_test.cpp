// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// QdiscSource, read_interface and NetlinkSocket against this kernel, in a network namespace of this
// process that ends with it. A program of its own (no Catch runner): it must unshare before
// anything else, and skips with 77.
#include <linux/if_addr.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "control/link/interface_drops.hpp"
#include "control/link/qdisc_source.hpp"
#include "engine/base/fd.hpp"
#include "engine/base/system/interface.hpp"
#include "engine/base/system/netlink_message.hpp"
#include "tests/support/bare_test.hpp"

using namespace onehop;
using namespace onehop::test;
using namespace onehop::link;

namespace {
// A frame of an experimental EtherType, so that nothing answers. Returns false where the queue
// refused it.
bool send_frame(int ifindex) {
  const Fd fd{::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)};
  std::array<unsigned char, 1000> frame{};
  std::memset(frame.data(), 0xff, 6);
  frame[6] = 2;
  frame[12] = 0x88;
  frame[13] = 0xb5;
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_ifindex = ifindex;
  to.sll_halen = 6;
  return ::sendto(fd.get(), frame.data(), frame.size(), 0, reinterpret_cast<sockaddr*>(&to),
                  sizeof to) == 1000;
}

// Two sources that share the qdisc's are served by one dump, and an idle sender's backlog is read
// on.
void check_sharing(int ifindex, int upper) {
  auto opened = QdiscSource::open(ifindex, true);
  EXPECT(opened);
  if (!opened) return;
  QdiscSource& source = opened.value();
  law::LinkFacts facts;
  Instant now{5s};
  source.read(now, facts);
  EXPECT(facts.lower_queue && facts.lower_queue->at == now);
  if (!facts.lower_queue) return;
  const Bytes backlog = facts.lower_queue->value.queue.occupancy;
  EXPECT(send_frame(upper));
  EXPECT(source.queue(now) && source.queue(now)->occupancy == backlog);
  source.read(now + 3ms, facts);
  EXPECT(facts.lower_queue->at == now);
  EXPECT(source.queue(now + 4ms) && source.queue(now + 4ms)->occupancy > backlog);
  source.read_backlog(now + 4ms, facts);
  EXPECT(facts.lower_queue->at == now + 4ms);
  EXPECT(law::fresh(facts.lower_queue, now + 12ms) && !law::fresh(facts.lower_queue, now + 13ms));
}

// A device of each kind that this kernel can make: whether it is stacked, and on what.
void check_kinds(int lower) {
  struct Kind {
    const char* kind;
    const char* arguments;  // between name and kind
    bool is_stacked;
    bool has_lower;  // one device below, which the kernel names
  };
  constexpr std::array kinds{
      Kind{"macvlan", "link va", true, true}, Kind{"macvtap", "link va", true, true},
      Kind{"vlan", "link va", true, true},    Kind{"ipvlan", "link va", true, true},
      Kind{"ipvtap", "link va", true, true},  Kind{"macsec", "link va", true, true},
      Kind{"bridge", "", true, false},        Kind{"bond", "", true, false},
      Kind{"team", "", true, false},          Kind{"vrf", "", true, false},
      Kind{"veth", "", false, false},         Kind{"dummy", "", false, false}};
  for (const Kind& k : kinds) {
    const std::string kind = k.kind;
    const std::string more = kind == "vlan" ? " id 5" : kind == "vrf" ? " table 9" : "";
    // A device takes macvlans or ipvlans, not both.
    if (kind.starts_with("ipv")) (void)run("ip link set mv down && ip link del mv");
    const std::string make = std::string{"ip link add kx "} + k.arguments + " type " + kind + more;
    EXPECT(is_stacked_kind(kind) == k.is_stacked);
    if (!run((make + " 2>/dev/null").c_str())) {
      std::printf("not tried: this kernel makes no %s\n", k.kind);
      continue;
    }
    const auto made = read_interface(static_cast<int>(if_nametoindex("kx")));
    EXPECT(made && made.value().kind == kind);
    if (made) EXPECT(made.value().lower_ifindex == (k.has_lower ? lower : 0));
    if (made) EXPECT(is_software(made.value()) == (kind != "bond" && kind != "team"));
    EXPECT(run("ip link del kx"));
  }
}

// Each interface of a stack counts its own drops: a veth whose peer is down throws away what it is
// given.
void check_drops() {
  EXPECT(run(
      "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6"));  // it would send frames of its own
  EXPECT(run("ip link add vc type veth peer name vd && ip link set vc up && ip link set vd up") &&
         run("ip link add mc link vc type macvlan && ip link set mc up"));
  const int vc = static_cast<int>(if_nametoindex("vc")),
            mc = static_cast<int>(if_nametoindex("mc"));
  InterfaceDrops drops;
  EXPECT(drops.follow(mc));
  EXPECT(!InterfaceDrops{}.follow(9999));
  EXPECT(run("ip link set vd down"));
  const auto before = drops.since_followed();
  for (int i = 0; i < 5; ++i) (void)send_frame(vc);
  const auto one = drops.since_followed();
  for (int i = 0; i < 3; ++i) (void)send_frame(mc);
  const auto both = drops.since_followed();
  EXPECT(before && before.value().empty());
  const InterfaceDrops::Drops five{{"vc", 5}}, four{{"vc", 4}};
  EXPECT(one && one.value() == five);
  EXPECT(both && both.value().size() == 2 && both.value()[0].first == "mc" &&
         both.value()[0].second == 3);
  EXPECT(run("ip link del vc"));
  EXPECT(!drops.since_followed());  // gone: nothing is known, which is not none
  // They come back with other indices: what the new ones drop is counted from here.
  EXPECT(run("ip link add vc type veth peer name vd && ip link set vc up && ip link set vd up"));
  const int again = static_cast<int>(if_nametoindex("vc"));
  EXPECT(again != vc && drops.follow(again));
  EXPECT(run("ip link set vd down"));
  for (int i = 0; i < 4; ++i) (void)send_frame(again);
  const auto anew = drops.since_followed();
  EXPECT(anew && anew.value() == four);
}

// A dump that changes while it is read ends with an error, and the requests that follow on the same
// socket do not meet what is left of it.
void check_broken_dump() {
  EXPECT(
      run("for i in $(seq 4000); do echo addr add 127.1.$((i / 250)).$((i % 250))/32 dev lo; done "
          "| ip -batch -"));
  auto socket = NetlinkSocket::open(NETLINK_ROUTE);
  EXPECT(socket);
  if (!socket) return;
  int addresses = 0;
  const auto dump = [&](const char* change) {
    addresses = 0;
    NetlinkRequest<ifaddrmsg> request{RTM_GETADDR, NLM_F_DUMP, {.ifa_family = AF_INET}};
    return socket.value().request(request, [&](const nlmsghdr*) {
      if (addresses++ == 0 && change != nullptr) EXPECT(run(change));
    });
  };
  const auto broken = dump("ip addr add 127.2.0.1/32 dev lo");
  EXPECT(!broken && broken.error().errno_value == EINTR && addresses < 4000);
  EXPECT(read_interface(socket.value(), 1));
  EXPECT(!dump("ip addr add 127.2.0.2/32 dev lo"));
  EXPECT(dump(nullptr) && addresses >= 4002);
}
}  // namespace

int main() {
  if (::unshare(CLONE_NEWNET) != 0) skip("a network namespace needs root");
  if (!run("ip link add va mtu 1500 type veth peer name vb && ip link set va up && ip link set vb "
           "up") ||
      !run("ip link add mv link va type macvlan mode bridge && ip link set mv up"))
    skip("ip cannot make veth and macvlan here");
  if (!run("tc qdisc add dev va root tbf rate 8kbit burst 2000 limit 1000000"))
    skip("tc cannot make a tbf here");
  const int va = static_cast<int>(if_nametoindex("va")),
            vb = static_cast<int>(if_nametoindex("vb"));
  const int mv = static_cast<int>(if_nametoindex("mv"));

  const auto info = read_interface(mv);
  EXPECT(info);
  if (info) {
    EXPECT(info.value().kind == "macvlan");
    EXPECT(info.value().lower_ifindex == va);
    EXPECT(is_software(info.value()));
    EXPECT(info.value().mtu_bytes == 1500);
  }
  const auto veth = read_interface(va);
  EXPECT(veth && is_software(veth.value()) && veth.value().lower_ifindex == 0);
  // What the veth driver claims, and why it is ignored.
  EXPECT(read_link_rate("va") == mbit_per_s(10'000));
  const auto missing = read_interface(9999);
  EXPECT(!missing);
  if (!missing) EXPECT(!missing.error().attempt.empty() && !missing.error().cause.empty());
  EXPECT(!QdiscSource::open(9999));

  auto below = QdiscSource::open(mv);
  EXPECT(below);
  auto none = QdiscSource::open(vb);
  EXPECT(none);
  // An AF_XDP socket goes by the qdisc of its own interface, and not by that below.
  auto bypassed = QdiscSource::open(va, false);
  EXPECT(bypassed && !bypassed.value().queue(Instant{1s}));
  auto below_bypassed = QdiscSource::open(mv, false);
  EXPECT(below_bypassed && below_bypassed.value().queue(Instant{1s}));
  if (below && none) {
    const auto before = below.value().queue(Instant{1s});
    EXPECT(before && before->occupancy == Bytes{0});
    for (int i = 0; i < 20; ++i) EXPECT(send_frame(mv));
    const auto after = below.value().queue(Instant{2s});
    EXPECT(after && after->occupancy >= Bytes{10'000});
    EXPECT(after && after->capacity == Bytes{1'000'000});
    EXPECT(after && after->at == Instant{2s});
    auto own = QdiscSource::open(va);
    EXPECT(own && own.value().queue(Instant{2s}) && own.value().root_kind() == "tbf");
    EXPECT(!none.value().queue(Instant{1s}));
    EXPECT(!none.value().error());
  }
  check_sharing(va, mv);
  check_kinds(va);
  check_drops();
  check_broken_dump();
  if (failures == 0) std::printf("ok\n");
  return failures == 0 ? 0 : 1;
}
