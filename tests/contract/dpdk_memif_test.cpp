// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The port contract on two DPDK ports joined by net_memif, both in this process, without root and
// without huge pages. DPDK owns such a link whole: the ports find each other's link address
// themselves.
#include <unistd.h>

#include "tests/contract/dpdk_pair.hpp"

namespace onehop::test {
struct MemifPair4;
struct MemifPair6;
}  // namespace onehop::test
#define ONEHOP_PORT_PAIRS onehop::test::MemifPair4, onehop::test::MemifPair6
#include "tests/contract/port_suite.hpp"

namespace onehop::test {

struct MemifPair4 : RealTime {
  static constexpr Abilities abilities{.can_mark = true};

  explicit MemifPair4(bool is_ipv6 = false) : is_ipv6_{is_ipv6} {
    // The control connection's addresses label the frames; here both ends have the same one, as
    // over loopback.
    a_ = DpdkEnd::open("net_memif0", memif("server"), loopback(is_ipv6));
    b_ = DpdkEnd::open("net_memif1", memif("client"), loopback(is_ipv6));
    a().update_path(path(a(), b(), wire::Ecn::ect0));
    b().update_path(path(b(), a(), wire::Ecn::ect0));
    // Connecting is work of EAL's interrupt thread, and then each asks for the other's address.
    for (int i = 0; i < 5000 && (a().lend(1).empty() || b().lend(1).empty()); ++i) {
      std::array<RxFrame, rx_batch_max> views;
      for (DpdkPort* port : {&a(), &b()}) {
        (void)port->flush(now());
        (void)port->receive(views);
        port->release();
      }
      pass(1ms);
    }
  }
  DpdkPort& a() { return *a_->port; }
  DpdkPort& b() { return *b_->port; }
  void mark_ce() { a().update_path(path(a(), b(), wire::Ecn::ce)); }

 private:
  // An abstract socket of its own for each pair: the driver closes the one before it only when the
  // process ends.
  std::string memif(const char* role) const {
    return std::string{"role="} + role + ",id=0,socket=/onehop-contract-" +
           std::to_string(::getpid()) + "-" + std::to_string(pair_number_);
  }
  PathUpdate path(const DpdkPort& from, const DpdkPort& to, wire::Ecn ecn) const {
    wire::UdpFlow flow{
        .is_ipv6 = is_ipv6_, .source_port = from.local_port(), .target_port = to.local_port()};
    flow.source_ip = flow.target_ip = loopback(is_ipv6_).address.bytes;
    PathUpdate update;
    update.header_bytes = static_cast<std::uint16_t>(wire::build_headers(flow, update.header));
    if (ecn == wire::Ecn::ce) update.header[15] |= is_ipv6_ ? std::byte{0x30} : std::byte{0x03};
    return update;
  }

  static inline int pairs_made_ = 0;
  const int pair_number_ = pairs_made_++;
  bool is_ipv6_;
  std::unique_ptr<DpdkEnd> a_, b_;
};

struct MemifPair6 : MemifPair4 {
  MemifPair6() : MemifPair4{true} {}
};

// Goal:   frames of others on the link reach nobody and do no harm, and ours between them arrive.
// Method: the second port sends by hand: other ports, other addresses, fragments, other protocols,
// then ours.
TEST_CASE("foreign frames and fragments on a DPDK link are ignored",
          "[contract][dpdk][N6][N7]") {
  MemifPair4 pair;
  Exchange<MemifPair4> exchange{pair};
  const auto send_changed = [&](std::size_t at, std::byte value) {
    PathUpdate update;
    wire::UdpFlow flow{.source_port = pair.a().local_port(), .target_port = pair.b().local_port()};
    flow.source_ip = flow.target_ip = loopback(false).address.bytes;
    update.header_bytes = static_cast<std::uint16_t>(wire::build_headers(flow, update.header));
    update.header[at] ^= value;
    pair.a().update_path(update);
    for (int i = 0; i < 40; ++i) {
      const auto slot = pair.a().lend(600);
      REQUIRE_FALSE(slot.empty());
      pair.a().commit(600);
    }
    (void)pair.a().flush(pair.now());
    pair.pass(2ms);
    CAPTURE(at);
    std::array<RxFrame, rx_batch_max> views;
    for (int i = 0; i < 5; ++i) CHECK(pair.b().receive(views) == 0);
  };
  send_changed(20, std::byte{0x20});  // more fragments follow
  send_changed(21, std::byte{0x01});  // a fragment's offset
  send_changed(23, std::byte{0x17});  // TCP
  send_changed(29, std::byte{0x02});  // from another address
  send_changed(36, std::byte{0x01});  // to another port
}

}  // namespace onehop::test
