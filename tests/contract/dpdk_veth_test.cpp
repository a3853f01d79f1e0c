// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The port contract with DPDK's net_af_xdp at one end or at both, over veth between two network
// namespaces (needs root), against the UDP and the AF_XDP port in both directions. Our steering
// program shares the interface with the kernel.
//
// The cases of a slow and of a changing link are not taken: net_af_xdp waits in the kernel for a
// full queue, and keeps its frames while the link is down.
#include <net/if.h>

#include <algorithm>

#include "engine/base/time.hpp"
#include "engine/port/udp_port.hpp"
#include "tests/contract/dpdk_pair.hpp"
#include "tests/xdp/xdp_lab.hpp"
#include "xdp/steer.hpp"

namespace onehop::test {
struct DpdkPair4;
struct DpdkPair6;
struct DpdkToUdp;
struct UdpToDpdk;
struct DpdkToXdp;
struct XdpToDpdk;
}  // namespace onehop::test
#define ONEHOP_PORT_PAIRS                                                    \
  onehop::test::DpdkPair4, onehop::test::DpdkPair6, onehop::test::DpdkToUdp, \
      onehop::test::UdpToDpdk, onehop::test::DpdkToXdp, onehop::test::XdpToDpdk
#include "tests/contract/port_suite.hpp"

namespace onehop::test {

inline constexpr std::uint16_t pair_port = 7411;

/// VethEnd: a device of net_af_xdp in a host's namespace, steered as the program does it. The
/// namespace is that of the calling thread, also when it closes.
struct VethEnd {
  VethEnd(XdpLab& lab_used, Host host_used, Family family) : lab{lab_used}, host{host_used} {
    const InNetns inside{lab.netns(host)};
    const Endpoint local = lab.address(host, family, pair_port);
    const Fd file = take_or_throw(xdp::steer_file(xdp::steer_frames(local)));
    const std::string name = host == Host::a ? "net_af_xdp0" : "net_af_xdp1";
    end = DpdkEnd::open(name, "iface=" + lab.interface(host) + ",xdp_prog=" + xdp::path_of(file),
                        local);
    link = take_or_throw(xdp::hold_program(
        static_cast<int>(::if_nametoindex(lab.interface(host).c_str())), lab.interface(host)));
    end->port->update_path(lab.path(host, family, pair_port, pair_port));
  }
  VethEnd(const VethEnd&) = delete;
  VethEnd& operator=(const VethEnd&) = delete;
  ~VethEnd() {
    const InNetns inside{lab.netns(host)};
    end.reset();
  }
  XdpLab& lab;
  Host host;
  std::unique_ptr<DpdkEnd> end;
  Fd link;
};

struct VethBase : RealTime {
  static constexpr Abilities abilities{.can_mark = true};
  static const char* skip_reason() {
    return has_root() ? nullptr : "network namespaces and XDP programs need root";
  }
  explicit VethBase(Family family_used) : family{family_used} {}
  std::unique_ptr<UdpPort> open_udp(Host host, wire::Ecn ecn) {
    const InNetns inside{lab.netns(host)};
    auto port =
        take_or_throw(UdpPort::open({.local = lab.address(host, family, pair_port), .ecn = ecn}));
    const Endpoint other = lab.address(host == Host::a ? Host::b : Host::a, family, pair_port);
    if (!port->connect(other)) throw std::runtime_error("connect");
    return port;
  }
  std::unique_ptr<AfXdpPort> open_xdp(Host host) {
    auto port = take_or_throw(lab.open(host, lab.config(host, family, pair_port, XdpMode::copy)));
    port->update_path(lab.path(host, family, pair_port, pair_port));
    return port;
  }
  PathUpdate marked() const {
    PathUpdate update = lab.path(Host::a, family, pair_port, pair_port);
    update.header[15] |= family == Family::ipv4 ? std::byte{0x03} : std::byte{0x30};
    return update;
  }

  XdpLab lab;
  Family family;
};

struct DpdkPair4 : VethBase {
  explicit DpdkPair4(Family family_used = Family::ipv4) : VethBase{family_used} {}
  DpdkPort& a() { return *a_.end->port; }
  DpdkPort& b() { return *b_.end->port; }
  void mark_ce() { a().update_path(marked()); }
  VethEnd a_{lab, Host::a, family}, b_{lab, Host::b, family};
};
struct DpdkPair6 : DpdkPair4 {
  DpdkPair6() : DpdkPair4{Family::ipv6} {}
};

struct DpdkToUdp : VethBase {
  DpdkToUdp() : VethBase{Family::ipv6} {}
  DpdkPort& a() { return *a_.end->port; }
  UdpPort& b() { return *b_; }
  void mark_ce() { a().update_path(marked()); }
  VethEnd a_{lab, Host::a, family};
  std::unique_ptr<UdpPort> b_ = open_udp(Host::b, wire::Ecn::ect0);
};

struct UdpToDpdk : VethBase {
  UdpToDpdk() : VethBase{Family::ipv4} {}
  UdpPort& a() { return *a_; }
  DpdkPort& b() { return *b_.end->port; }
  void mark_ce() {
    a_.reset();
    a_ = open_udp(Host::a, wire::Ecn::ce);
  }
  VethEnd b_{lab, Host::b, family};
  std::unique_ptr<UdpPort> a_ = open_udp(Host::a, wire::Ecn::ect0);
};

struct DpdkToXdp : VethBase {
  DpdkToXdp() : VethBase{Family::ipv4} {}
  DpdkPort& a() { return *a_.end->port; }
  AfXdpPort& b() { return *b_; }
  void mark_ce() { a().update_path(marked()); }
  VethEnd a_{lab, Host::a, family};
  std::unique_ptr<AfXdpPort> b_ = open_xdp(Host::b);
};

struct XdpToDpdk : VethBase {
  XdpToDpdk() : VethBase{Family::ipv6} {}
  AfXdpPort& a() { return *a_; }
  DpdkPort& b() { return *b_.end->port; }
  void mark_ce() { a().update_path(marked()); }
  VethEnd b_{lab, Host::b, family};
  std::unique_ptr<AfXdpPort> a_ = open_xdp(Host::a);
};

}  // namespace onehop::test
