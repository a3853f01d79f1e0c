// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the link sources and the UDP port see of a real mac80211 link, in the virtual machine
// (tests/vm/live). Sends frames from the access point to a station, one by one and in segmented
// batches, and checks what comes back.
//
//   wifi_live INTERFACE PEER-ADDRESS perfect|lossy [PEER-STATION: last two bytes of
//   02:00:00:00:XX:YY, as XXYY]
#include <net/if.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "control/link/link_watch.hpp"
#include "control/link/nl80211_source.hpp"
#include "engine/base/time.hpp"
#include "engine/port/udp_port.hpp"
#include "tests/support/bare_test.hpp"

using namespace onehop;
using namespace onehop::test;

namespace {

Endpoint address(const char* text, std::uint16_t port) { return {*IpAddress::parse(text), port}; }

void send(UdpPort& port, int frames, int frames_per_flush) {
  for (int i = 0; i < frames; ++i) {
    const auto slot = port.lend(1000);
    if (slot.empty()) break;
    std::memset(slot.data(), 7, slot.size());
    port.commit(slot.size());
    if ((i + 1) % frames_per_flush != 0) continue;
    while (port.flush(monotonic_now()) != 0) ::usleep(1000);
    ::usleep(2000);  // a frame's answer takes the time of the air below it
  }
}

// The queue below is empty when nothing is outstanding any more; what is missing after 5 s never
// comes.
void drain(UdpPort& port) {
  for (int i = 0; i < 500; ++i) {
    ::usleep(10'000);
    if (port.tx_queue(monotonic_now()).occupancy == Bytes{0} && i > 20) return;
  }
}

void check_acknowledgements(const char* peer, bool is_lossy) {
  UdpPortConfig config;
  config.local = address("0.0.0.0", 0);
  auto opened = UdpPort::open(config);
  EXPECT(opened);
  if (!opened) return;
  UdpPort& port = *opened.value();
  EXPECT(port.connect(address(peer, 9)));
  port.ask_link_status();
  send(port, 200, 1);
  drain(port);
  const LinkStatus& status = port.link_status();
  std::printf("singles: %llu acknowledged, %llu failed of 200\n",
              static_cast<unsigned long long>(status.acked_total()),
              static_cast<unsigned long long>(status.failed_total()));
  EXPECT(status.state() == LinkStatus::State::answering);
  // ARP may have taken the first frame's place; a lossy medium loses every tenth.
  EXPECT(status.acked_total() + status.failed_total() >= 195);
  EXPECT(is_lossy == (status.failed_total() >= 10));
  const std::uint64_t before = status.acked_total() + status.failed_total();
  send(port, 200, 20);
  drain(port);
  std::printf(
      "segmented (%s): %llu reports of 200\n", port.info().mode.data(),
      static_cast<unsigned long long>(status.acked_total() + status.failed_total() - before));
}

void check_facts(const char* name, bool is_lossy, const std::optional<MacAddress>& peer) {
  const int ifindex = static_cast<int>(::if_nametoindex(name));
  auto watch = link::LinkWatch::open({.ifindex = ifindex, .peer = peer});
  EXPECT(watch);
  if (!watch) return;
  std::printf("sources: %s\n", std::string{watch.value().name()}.c_str());
  EXPECT(watch.value().name() == "nl80211+softnet");
  law::LinkFacts facts;
  for (int i = 0; i < 1500; ++i) {
    watch.value().read(monotonic_now(), facts);
    ::usleep(1000);
  }
  if (watch.value().error()) std::printf("error: %s\n", watch.value().error()->message().c_str());
  EXPECT(!watch.value().error());
  const Instant now = monotonic_now();
  watch.value().read(now, facts);
  EXPECT(facts.medium == law::Medium::wifi);
  EXPECT(law::fresh(facts.phy_rate, now) != nullptr);
  EXPECT(law::fresh(facts.exact_queue, now) != nullptr);
  EXPECT(law::fresh(facts.mac, now) != nullptr);
  EXPECT(facts.channel.has_value());
  EXPECT(!facts.own_airtime);  // hwsim counts none
  EXPECT(facts.host.has_value());
  EXPECT(facts.stations.has_value() ==
         peer.has_value());  // only an access point counts, and only here it is told the peer
  if (facts.stations) EXPECT(facts.stations->value == 1);
  if (facts.phy_rate)
    std::printf("rate %.1f Mbit/s, every %.1f ms\n",
                static_cast<double>(bps(facts.phy_rate->value)) / 1e6,
                static_cast<double>(facts.phy_rate->period.count()) / 1e6);
  if (facts.mac && is_lossy) EXPECT(facts.mac->value.tx_failed_total > 0);
  if (facts.exact_queue) EXPECT(facts.exact_queue->value.queue.drained_total > Bytes{200 * 1000});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  std::optional<MacAddress> peer;
  if (argc > 4) {
    const unsigned long tail = std::strtoul(argv[4], nullptr, 16);
    peer = MacAddress{
        std::byte{2}, {}, {}, {}, static_cast<std::byte>(tail >> 8), static_cast<std::byte>(tail)};
  }
  const bool is_lossy = std::string_view{argv[3]} == "lossy";
  check_acknowledgements(argv[2], is_lossy);
  check_facts(argv[1], is_lossy, peer);
  std::printf(failures == 0 ? "ok\n" : "%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
