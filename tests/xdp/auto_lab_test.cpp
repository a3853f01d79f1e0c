// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   --io auto attaches the steering program once where it takes AF_XDP, and not at all where
// it does not: each time costs the kernel tens of milliseconds. Method: veth, which has copy mode
// and no zero-copy, and says so; what is attached is counted where the rights are asked for.
#include <net/if.h>

#include <catch2/catch.hpp>

#include "control/transfer/port/ports.hpp"
#include "engine/base/system/interface.hpp"
#include "tests/xdp/xdp_lab.hpp"
#include "xdp/local_rights.hpp"

using namespace onehop;
using namespace onehop::test;

namespace {

class CountingRights final : public xdp::LocalRights {
 public:
  CountingRights() { kept_rights() = this; }
  ~CountingRights() override { kept_rights() = nullptr; }
  Result<SteerFds> attach_program(const SteerRequest& request) override {
    ++attached_total;
    return LocalRights::attach_program(request);
  }
  int attached_total = 0;
};

struct Opening {
  api::Role role = api::Role::receiving;
  bool is_small = false;
};

/// The io that auto takes on b.
std::string io_of(const XdpLab& lab, const Opening& opening) {
  const InNetns inside{lab.netns(Host::b)};
  const transfer::Settings settings;
  REQUIRE(settings.io == "auto");
  const std::string interface = lab.interface(Host::b);
  const Endpoint local = lab.address(Host::b, Family::ipv4, 7411);
  auto opened = transfer::OpenPort::open({.settings = settings,
                                          .interface = interface,
                                          .local = local,
                                          .role = opening.role,
                                          .is_small = opening.is_small});
  if (!opened) FAIL(opened.error().message());
  CAPTURE(opened.value().reason());
  CHECK_FALSE(opened.value().reason().empty());
  return std::string{opened.value().info().io};
}

}  // namespace

TEST_CASE("auto attaches one program for what it receives, and none where UDP is cheaper") {
  const XdpLab lab;
  lab.run(Host::b, "ethtool -K vb gro off");
  CountingRights rights;
  SECTION("receiving") {
    CHECK(io_of(lab, {}) == "afxdp");
    CHECK(rights.attached_total == 1);
  }
  SECTION("receiving what is over before a program pays") {
    CHECK(io_of(lab, {.is_small = true}) == "udp");
    CHECK(rights.attached_total == 0);
  }
  SECTION("sending") {
    CHECK(io_of(lab, {.role = api::Role::sending}) == "udp");
    CHECK(rights.attached_total == 0);
  }
}

TEST_CASE("a driver says whether it has zero-copy") {
  const XdpLab lab;
  const InNetns inside{lab.netns(Host::b)};
  const auto has = read_has_zero_copy(static_cast<int>(::if_nametoindex("vb")));
  if (has) CHECK_FALSE(*has);
  CHECK_FALSE(read_has_zero_copy(1 << 20).has_value());
}
