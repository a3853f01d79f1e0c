// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// QdiscSource and read_link_info against this kernel, in a network namespace of this process that ends with it.
// A program of its own (no Catch runner): it must unshare before anything else, and skips with 77.
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "control/link/interface_drops.hpp"
#include "control/link/link_info.hpp"
#include "control/link/qdisc_source.hpp"
#include "engine/base/fd.hpp"
#include "tests/support/bare_test.hpp"

using namespace onehop;
using namespace onehop::test;
using namespace onehop::link;

namespace {
// A frame of an experimental EtherType, so that nothing answers. Returns false where the queue refused it.
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
  return ::sendto(fd.get(), frame.data(), frame.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof to) == 1000;
}

// Each interface of a stack counts its own drops: a veth whose peer is down throws away what it is given.
void check_drops() {
  EXPECT(run("echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6"));  // it would send frames of its own
  EXPECT(run("ip link add vc type veth peer name vd && ip link set vc up && ip link set vd up") &&
         run("ip link add mc link vc type macvlan && ip link set mc up"));
  const int vc = static_cast<int>(if_nametoindex("vc")), mc = static_cast<int>(if_nametoindex("mc"));
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
  EXPECT(one && one.value().size() == 1 && one.value()[0].interface == "vc" && one.value()[0].frames == 5);
  EXPECT(both && both.value().size() == 2 && both.value()[0].interface == "mc" && both.value()[0].frames == 3);
  EXPECT(run("ip link del vc"));
  EXPECT(!drops.since_followed());  // gone: nothing is known, which is not none
  // They come back with other indices: what the new ones drop is counted from here.
  EXPECT(run("ip link add vc type veth peer name vd && ip link set vc up && ip link set vd up"));
  const int again = static_cast<int>(if_nametoindex("vc"));
  EXPECT(again != vc && drops.follow(again));
  EXPECT(run("ip link set vd down"));
  for (int i = 0; i < 4; ++i) (void)send_frame(again);
  const auto anew = drops.since_followed();
  EXPECT(anew && anew.value().size() == 1 && anew.value()[0].interface == "vc" && anew.value()[0].frames == 4);
}
}  // namespace

int main() {
  if (::unshare(CLONE_NEWNET) != 0) skip("a network namespace needs root");
  if (!run("ip link add va mtu 1500 type veth peer name vb && ip link set va up && ip link set vb up") ||
      !run("ip link add mv link va type macvlan mode bridge && ip link set mv up"))
    skip("ip cannot make veth and macvlan here");
  if (!run("tc qdisc add dev va root tbf rate 8kbit burst 2000 limit 1000000")) skip("tc cannot make a tbf here");
  const int va = static_cast<int>(if_nametoindex("va")), vb = static_cast<int>(if_nametoindex("vb"));
  const int mv = static_cast<int>(if_nametoindex("mv"));

  const auto info = read_link_info(mv);
  EXPECT(info);
  if (info) {
    EXPECT(info.value().kind == "macvlan");
    EXPECT(info.value().lower_ifindex == va);
    EXPECT(info.value().is_virtual);
    EXPECT(info.value().mtu_bytes == 1500);
  }
  const auto veth = read_link_info(va);
  EXPECT(veth && veth.value().is_virtual && veth.value().lower_ifindex == 0);
  EXPECT(veth && veth.value().rate == mbit_per_s(10'000));  // what the veth driver claims, and why it is ignored
  const auto missing = read_link_info(9999);
  EXPECT(!missing);
  if (!missing) EXPECT(!missing.error().attempt.empty() && !missing.error().cause.empty());
  EXPECT(!QdiscSource::open(9999));

  auto below = QdiscSource::open(mv);
  EXPECT(below);
  auto none = QdiscSource::open(vb);
  EXPECT(none);
  // An AF_XDP socket goes by the qdisc of its own interface, and not by that below.
  auto bypassed = QdiscSource::open(va, false);
  EXPECT(bypassed && !bypassed.value().poll(Instant{1s}) && bypassed.value().root_kind() == "tbf");
  auto below_bypassed = QdiscSource::open(mv, false);
  EXPECT(below_bypassed && below_bypassed.value().poll(Instant{1s}));
  if (below && none) {
    const auto before = below.value().poll(Instant{1s});
    EXPECT(before && before->occupancy == Bytes{0});
    for (int i = 0; i < 20; ++i) EXPECT(send_frame(mv));
    const auto after = below.value().poll(Instant{2s});
    EXPECT(after && after->occupancy >= Bytes{10'000});
    EXPECT(after && after->capacity == Bytes{1'000'000});
    EXPECT(after && after->at == Instant{2s});
    EXPECT(!none.value().poll(Instant{1s}));
    EXPECT(!none.value().error());
  }
  check_drops();
  if (failures == 0) std::printf("ok\n");
  return failures == 0 ? 0 : 1;
}
