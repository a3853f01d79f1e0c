// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The port contract with AF_XDP at one end or at both, between two network namespaces (needs root):
// over veth in native copy and skb mode, from a macvlan with TBF below it, and against the UDP port
// in both directions.
//
// Where AF_XDP sends, the cases of a changing link are not taken from the suite: an XSK keeps its
// frames while the link is down, where UDP refuses them. tests/xdp/afxdp_queue_lab_test.cpp has
// them (N9, N10).
#include "engine/port/udp_port.hpp"
#include "tests/contract/pairs.hpp"
#include "tests/xdp/xdp_lab.hpp"
#include "xdp/afxdp_port.hpp"

namespace onehop::test {
struct CopyPair;
struct SkbPair6;
struct MacvlanPair;
struct XdpToUdpPair;
struct UdpToXdpPair;
}  // namespace onehop::test
#define ONEHOP_PORT_PAIRS                                                    \
  onehop::test::CopyPair, onehop::test::SkbPair6, onehop::test::MacvlanPair, \
      onehop::test::XdpToUdpPair, onehop::test::UdpToXdpPair
#include "tests/contract/port_suite.hpp"

namespace onehop::test {

inline constexpr std::uint16_t pair_port = 7411;

template <class A, class B>
struct XdpPairBase : RealTime {
  static const char* skip_reason() {
    return has_root() ? nullptr : "network namespaces and XDP programs need root";
  }
  explicit XdpPairBase(XdpLabOptions options, Family family_used)
      : lab{options}, family{family_used} {}
  A& a() { return *a_; }
  B& b() { return *b_; }
  std::unique_ptr<AfXdpPort> open_xdp(Host host, XdpMode mode) {
    AfXdpConfig config = lab.config(host, family, pair_port, mode);
    config.tx_frames = 512;  // a slow link empties it in the suite's time
    auto port = take_or_throw(lab.open(host, config));
    port->update_path(lab.path(host, family, pair_port, pair_port));
    return port;
  }
  std::unique_ptr<UdpPort> open_udp(Host host, wire::Ecn ecn) {
    const InNetns inside{lab.netns(host)};
    auto port = take_or_throw(UdpPort::open(
        {.local = lab.address(host, family, pair_port), .sndbuf_bytes = 256 << 10, .ecn = ecn}));
    const Endpoint other = lab.address(host == Host::a ? Host::b : Host::a, family, pair_port);
    if (!port->connect(other)) throw std::runtime_error("connect");
    return port;
  }
  // The template's ECN field, from ECT(0) to CE.
  void mark_template() {
    PathUpdate update = lab.path(Host::a, family, pair_port, pair_port);
    update.header[15] |= family == Family::ipv4 ? std::byte{0x03} : std::byte{0x30};
    a_->update_path(update);
  }

  XdpLab lab;
  Family family;
  std::unique_ptr<A> a_;
  std::unique_ptr<B> b_;
};

struct CopyPair : XdpPairBase<AfXdpPort, AfXdpPort> {
  static constexpr Abilities abilities{.can_mark = true};
  explicit CopyPair(XdpMode mode = XdpMode::copy, Family family_used = Family::ipv4)
      : XdpPairBase{{}, family_used} {
    a_ = open_xdp(Host::a, mode);
    b_ = open_xdp(Host::b, mode);
  }
  void mark_ce() { mark_template(); }
};

struct SkbPair6 : CopyPair {
  SkbPair6() : CopyPair{XdpMode::skb, Family::ipv6} {}
};

struct MacvlanPair : XdpPairBase<AfXdpPort, AfXdpPort> {
  static constexpr Abilities abilities{.is_shaped = true, .can_mark = true};
  MacvlanPair() : XdpPairBase{{.macvlan_shaper = "pfifo limit 10000"}, Family::ipv4} {
    a_ = open_xdp(Host::a, XdpMode::automatic);
    b_ = open_xdp(Host::b, XdpMode::automatic);
  }
  void set_slow(bool is_slow) {
    shape(is_slow ? "tbf rate 20mbit burst 70kb limit 4mb" : "pfifo limit 10000");
  }
  void set_dropping() { shape("tbf rate 5mbit burst 10kb limit 12kb"); }
  void mark_ce() { mark_template(); }

 private:
  void shape(const std::string& qdisc) {
    lab.run(Host::a, "tc qdisc replace dev va root " + qdisc);
  }
};

struct XdpToUdpPair : XdpPairBase<AfXdpPort, UdpPort> {
  static constexpr Abilities abilities{.can_mark = true};
  XdpToUdpPair() : XdpPairBase{{}, Family::ipv6} {
    a_ = open_xdp(Host::a, XdpMode::copy);
    b_ = open_udp(Host::b, wire::Ecn::ect0);
  }
  void mark_ce() { mark_template(); }
};

struct UdpToXdpPair : XdpPairBase<UdpPort, AfXdpPort> {
  static constexpr Abilities abilities{.is_shaped = true, .can_mark = true, .can_change = true};
  UdpToXdpPair() : XdpPairBase{{}, Family::ipv4} {
    a_ = open_udp(Host::a, wire::Ecn::ect0);
    b_ = open_xdp(Host::b, XdpMode::copy);
  }
  void set_slow(bool is_slow) {
    lab.run(Host::a, is_slow ? "tc qdisc replace dev va root tbf rate 20mbit burst 70kb limit 4mb"
                             : "tc qdisc del dev va root");
  }
  void set_dropping() {
    lab.run(Host::a, "tc qdisc replace dev va root tbf rate 5mbit burst 10kb limit 12kb");
  }
  void mark_ce() {
    a_.reset();
    a_ = open_udp(Host::a, wire::Ecn::ce);
  }
  void set_mtu(std::size_t bytes) {
    lab.run(Host::a, "ip link set va mtu " + std::to_string(bytes));
    lab.run(Host::b, "ip link set vb mtu " + std::to_string(bytes));
  }
  void set_up(bool is_up) { lab.run(Host::a, is_up ? "ip link set va up" : "ip link set va down"); }
};

}  // namespace onehop::test
