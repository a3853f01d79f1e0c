// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Reports of the link: the message, and asking for them where nobody answers. What a driver really
// reports is seen in the virtual machine (tests/vm/live).
#include <catch2/catch.hpp>
#include <netinet/in.h>

#include <asm/socket.h>
#include <netinet/in.h>

#include <array>
#include <cstring>

#include "engine/base/time.hpp"
#include "engine/port/udp_port.hpp"
#include "tests/support/needs.hpp"

namespace onehop {
namespace {

// is_taken hands over a message of the error queue with one control part.
bool is_taken(LinkStatus& status, int level, int type, int value,
              std::size_t length = CMSG_LEN(sizeof(int))) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = level;
  part->cmsg_type = type;
  part->cmsg_len = length;
  std::memcpy(CMSG_DATA(part), &value, sizeof value);
  return status.take(message);
}

Endpoint loopback(std::uint16_t port) { return {*IpAddress::parse("127.0.0.1"), port}; }

}  // namespace

TEST_CASE("a report counts as acknowledged or as failed, and another message as neither",
          "[port][link_status]") {
  LinkStatus status;
  CHECK(is_taken(status, SOL_SOCKET, SCM_WIFI_STATUS, 1));
  CHECK(is_taken(status, SOL_SOCKET, SCM_WIFI_STATUS, 0));
  CHECK_FALSE(is_taken(status, SOL_SOCKET, SCM_TIMESTAMP, 1));
  CHECK_FALSE(is_taken(status, IPPROTO_IP, SCM_WIFI_STATUS, 1));
  CHECK_FALSE(is_taken(status, SOL_SOCKET, SCM_WIFI_STATUS, 1, CMSG_LEN(1)));
  msghdr empty{};
  CHECK_FALSE(status.take(empty));
  CHECK(status.acked_total() == 1);
  CHECK(status.failed_total() == 1);
  CHECK(status.state() == LinkStatus::State::answering);
}

TEST_CASE("a port that was not told to ask does not, one that asks in vain stops",
          "[port][link_status]") {
  ONEHOP_NEEDS(onehop::test::has_wifi_status(),
               "this kernel does not say what became of a frame (SO_WIFI_STATUS)");
  UdpPortConfig config;
  config.local = loopback(0);
  auto quiet = UdpPort::open(config);
  REQUIRE(quiet);
  CHECK(quiet.value()->link_status().state() == LinkStatus::State::off);
  auto asking = UdpPort::open(config);
  REQUIRE(asking);
  UdpPort& port = *asking.value();
  port.ask_link_status();
  CHECK(port.link_status().state() == LinkStatus::State::asked);
  REQUIRE(port.connect(loopback(quiet.value()->local_port().value())));
  const auto send_one = [&] {
    REQUIRE(port.lend(100).size() == 100);
    port.commit(100);
    REQUIRE(port.flush(monotonic_now()) == 0);
  };
  for (std::uint32_t i = 1; i < LinkStatus::trial_frames; ++i) send_one();
  CHECK(port.link_status().state() == LinkStatus::State::asked);
  send_one();
  CHECK(port.link_status().state() == LinkStatus::State::off);
  CHECK(port.link_status().acked_total() == 0);
}

}  // namespace onehop
