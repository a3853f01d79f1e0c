// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LinkWatch against this kernel's links, in a network namespace of this process that ends with it.
// A program of its own (no Catch runner): it must unshare before anything else, and skips with 77.
#include <net/if.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>

#include "control/link/link_watch.hpp"
#include "control/link/wired_source.hpp"
#include "engine/base/time.hpp"
#include "tests/support/bare_test.hpp"

using namespace onehop;
using namespace onehop::test;
using namespace onehop::link;

namespace {
// The kernel notes a carrier some milliseconds after it changed: read until the name is as wanted,
// 10 s at most.
bool becomes(LinkWatch& watch, law::LinkFacts& facts, std::string_view name) {
  for (int i = 0; i < 1000; ++i) {
    watch.read(monotonic_now(), facts);
    if (watch.name() == name) return true;
    ::usleep(10'000);
  }
  std::printf("the sources are %s, not %s\n", std::string{watch.name()}.c_str(),
              std::string{name}.c_str());
  return false;
}
}  // namespace

int main() {
  if (::unshare(CLONE_NEWNET) != 0) skip("a network namespace needs root");
  if (!run("ip link add va type veth peer name vb && ip link set va up && ip link set vb up"))
    skip("ip cannot make veth here");
  const int ifindex = static_cast<int>(::if_nametoindex("va"));
  auto opened = LinkWatch::open({.ifindex = ifindex});
  EXPECT(opened);
  if (!opened) return 1;
  LinkWatch& watch = opened.value();
  law::LinkFacts facts;
  EXPECT(becomes(watch, facts, "softnet"));
  EXPECT(facts.host.has_value());
  EXPECT(!facts.phy_rate);  // what a veth claims is worth nothing

  // A change that is not of this link, and one that does not matter.
  EXPECT(run("ip link add other type veth peer name rehto && ip link set va txqueuelen 500"));
  const auto source = watch.found().front().source;  // a look would find another one
  watch.read(monotonic_now(), facts);
  EXPECT(watch.found().front().source == source);
  EXPECT(facts.host.has_value());

  EXPECT(run("ip link set vb down"));
  EXPECT(becomes(watch, facts, "none"));
  EXPECT(!facts.host);
  EXPECT(watch.found().back().reason == "the interface has no carrier");
  EXPECT(run("ip link set vb up"));
  EXPECT(becomes(watch, facts, "softnet"));
  EXPECT(run("ip link del va"));
  EXPECT(becomes(watch, facts, "none"));
  EXPECT(watch.found().back().reason == "the interface is gone");
  // Made anew it is another interface: the session opens another watch for it.
  EXPECT(run("ip link add va type veth peer name vb && ip link set va up && ip link set vb up"));
  watch.read(monotonic_now(), facts);
  EXPECT(watch.name() == "none" && static_cast<int>(::if_nametoindex("va")) != ifindex);

  EXPECT(!WiredSource::open(static_cast<int>(::if_nametoindex("other")), nullptr));
  EXPECT(!WiredSource::open(9999, nullptr));
  if (failures == 0) std::printf("ok\n");
  return failures == 0 ? 0 : 1;
}
