// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   no law sends faster than either end's user allows.
// Method: one tick of a constant law under each pair of bounds.
#include <catch2/catch.hpp>

#include "control/law/fixed.hpp"
#include "control/rate/rate_loop.hpp"

namespace onehop::rate {
namespace {

RateGrant granted(BytesPerSecond own, BytesPerSecond offer) {
  law::Fixed law{mbit_per_s(400)};
  Latest<PathReport> path;
  Latest<Limits> limits;
  Latest<RateGrant> grant;
  Latest<RateState> state;
  RateLoop loop{law, {path, limits, grant, state}, nullptr};
  PathReport report;
  report.offered = mib(1);
  report.payload_per_frame = {1400};
  report.wire_per_frame = {1514};
  report.rate_offer = offer;
  path.store(report);
  limits.store({.rate_max = own});
  loop.tick(Instant{1s});
  return grant.load();
}

}  // namespace

TEST_CASE("the lower of the user's limit and the peer's offer bounds every law",
          "[control][rate]") {
  const BytesPerSecond none{};
  CHECK(granted(none, none).rate == mbit_per_s(400));
  CHECK(granted(none, mbit_per_s(80)).rate == mbit_per_s(80));
  CHECK(granted(mbit_per_s(60), mbit_per_s(80)).rate == mbit_per_s(60));
  CHECK(granted(mbit_per_s(90), mbit_per_s(80)).rate == mbit_per_s(80));
  CHECK(granted(mbit_per_s(60), none).rate == mbit_per_s(60));
}

TEST_CASE("an offer slows down and does not stop, and is not final", "[control][rate]") {
  CHECK(granted({}, {1}).rate > BytesPerSecond{1});
  CHECK_FALSE(granted({}, mbit_per_s(80)).is_rate_final);
  CHECK(granted(mbit_per_s(60), {}).is_rate_final);
}

}  // namespace onehop::rate
