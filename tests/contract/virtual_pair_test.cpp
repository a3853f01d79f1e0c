// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The port contract on two virtual ports, in virtual time.
#include <algorithm>

#include "tools/labs/world/virtual_port.hpp"

namespace onehop::test {
struct VirtualPair;
}
#define ONEHOP_PORT_PAIRS onehop::test::VirtualPair
#include "tests/contract/port_suite.hpp"

namespace onehop::test {

struct VirtualPair {
  static constexpr Abilities abilities{
      .is_shaped = true, .can_mark = true, .can_change = true, .is_virtual = true};
  static const char* skip_reason() { return nullptr; }

  VirtualPort& a() { return a_; }
  VirtualPort& b() { return b_; }
  Instant now() const { return link_.now(); }
  void pass(Nanos span) { link_.run_until(now() + span); }
  Instant wait(VirtualPort& port, Instant deadline, bool is_rx_wanted) {
    (void)port.wait(deadline, is_rx_wanted);
    while (port.ready_at() > now()) link_.run_until(std::min(port.ready_at(), link_.next_event()));
    return now();
  }
  void set_slow(bool is_slow) { link_.set_rate(0, mbit_per_s(is_slow ? 20 : 1000)); }
  void set_dropping() {
    link_.config(0).is_drop_tail = true;
    link_.config(0).queue_capacity = kib(8);
    set_slow(true);
  }
  void mark_ce() { link_.config(0).ce_threshold = Bytes{1}; }
  void set_mtu(std::size_t bytes) { link_.set_mtu(0, bytes); }
  void set_up(bool is_up) { link_.set_up(is_up); }

 private:
  VirtualLink link_{VirtualLink::Options{}};
  VirtualPort a_{link_, 0};
  VirtualPort b_{link_, 1};
};

}  // namespace onehop::test
