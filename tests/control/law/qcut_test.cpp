// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Qcut by equation and in closed loop.
#include <catch2/catch.hpp>

#include "control/law/fixed.hpp"
#include "control/law/qcut.hpp"
#include "control/law/safe_range.hpp"
#include "tests/control/law/air_link.hpp"
#include "tests/control/law/law_sample.hpp"

namespace onehop::law {
namespace {

using test::AirLink;
using test::fact;
using test::SampleMaker;

std::unique_ptr<Controller> fixed(BytesPerSecond rate) { return std::make_unique<Fixed>(rate); }

/// tell gives `span` of 75 MB/s with `standing` in the queue after each refill.
RateGrant tell(Qcut& law, SampleMaker& make, Nanos span, Bytes standing, Bytes left = {75'000}) {
  RateGrant grant;
  for (Nanos t{0}; t < span; t += 1ms) grant = law.step(make.step(1ms, left, standing));
  return grant;
}

//= [QCUT] gate type=test
TEST_CASE("the gate is R_hat tau: 4 ms on a wire, 8 ms on Wi-Fi", "[control][law][qcut]") {
  const bool is_wifi = GENERATE(false, true);
  CAPTURE(is_wifi);
  Qcut law{fixed(mbit_per_s(5000)), {}};
  SampleMaker make;
  make.sample.facts.medium = is_wifi ? Medium::wifi : Medium::wired;
  const RateGrant grant = tell(law, make, 200ms, kib(300));
  CHECK(grant.backlog_max.count == Approx(75e6 * (is_wifi ? 0.008 : 0.004)).epsilon(0.03));
  CHECK(grant.rate == mbit_per_s(5000));
  CHECK(law.name() == "fixed+qcut");
  CHECK(*law.trace().details.gate == grant.backlog_max);
}

TEST_CASE("the gate is never less than two batches and never more than the law inside allows",
          "[control][law][qcut]") {
  Qcut law{fixed(mbit_per_s(10)), {}};
  SampleMaker make;
  const RateGrant grant = tell(law, make, 200ms, {6000}, {1514});
  CHECK(grant.backlog_max <= mbit_per_s(10) * 18ms);
  Qcut deep{fixed(mbit_per_s(5000)), {}};
  SampleMaker slow;
  const RateGrant least = tell(deep, slow, 400ms, {60'000}, {100});
  CHECK(least.backlog_max.count == 2 * 1514);  // 0.1 MB/s: half of tau holds less than a frame
}

//= [QCUT] adaptation of tau type=test
TEST_CASE(
    "a starved queue widens the gate by a quarter per 100 ms up to 20 ms, and it relaxes by 2 % a "
    "second",
    "[control][law][qcut]") {
  Qcut law{fixed(mbit_per_s(5000)), {}};
  SampleMaker make;
  make.sample.facts.medium = Medium::wired;
  tell(law, make, 200ms, kib(300));
  CHECK(*law.trace().details.tau == 4ms);
  tell(law, make, 100ms, {0});
  CHECK(*law.trace().details.tau == 5ms);
  tell(law, make, 2s, {0});
  CHECK(*law.trace().details.tau == 20ms);
  tell(law, make, 3s, kib(1200));
  CHECK(law.trace().details.tau->count() == Approx(20e6 * 0.98 * 0.98 * 0.98).epsilon(0.001));
}

TEST_CASE("the gate is off where completion does not mean sent, and says so once",
          "[control][law][qcut]") {
  Qcut law{fixed(mbit_per_s(5000)), {}};
  SampleMaker make;
  make.sample.limits.link_rate = mbit_per_s(300);  // and 600 complete
  const RateGrant grant = tell(law, make, 400ms, kib(300));
  CHECK(law.trace().notices == bit_of(Notice::qcut_false_completion));
  CHECK(grant.backlog_max == mbit_per_s(5000) * 18ms);
  CHECK_FALSE(law.trace().details.gate);
}

TEST_CASE("completions prove nothing where nobody knows the link's rate", "[control][law][qcut]") {
  Qcut law{fixed(mbit_per_s(5000)), {}};
  SampleMaker make;
  tell(law, make, 400ms, kib(300));
  CHECK(law.trace().notices == 0);
  CHECK(law.trace().details.gate);
}

TEST_CASE("a port that does not see below itself has no gate, and it says so once",
          "[control][law][qcut]") {
  Qcut law{fixed(mbit_per_s(100)), {}};
  SampleMaker make;
  make.sample.path.tx_queue.scope = QueueScope::own_ring;
  tell(law, make, 400ms, kib(300));
  CHECK(law.trace().notices == bit_of(Notice::qcut_no_queue));
}

// Bounds: own lower-queue delay p99 at most 2 tau, throughput at least 98 % of the ungated. Three
// aggregates of 5.35 ms are 0.1 ms more.
TEST_CASE("the gate holds a greedy law's delay below 2 tau for 2 percent of its rate",
          "[control][law][qcut]") {
  const int mbps = GENERATE(100, 600, 1000);
  const bool is_air = GENERATE(false, true);
  CAPTURE(mbps, is_air);
  Qcut law{fixed(mbit_per_s(2 * mbps)), {}};
  AirLink link{is_air ? test::ChannelParams{} : test::wire_channel()};
  auto& s = link.add(law, {.phy = mbit_per_s(mbps)});
  s.medium = is_air ? Medium::wifi : Medium::wired;
  link.run(500ms);
  link.open_window();
  link.run(2s);
  CHECK(link.use(s) >= 0.98);
  CHECK(s.delay_ms(0.99) <= (is_air ? 16.1 : 8.0));
}

}  // namespace
}  // namespace onehop::law
