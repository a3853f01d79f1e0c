// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// When the sending loop refills next: by the equation, at its edges.
#include <catch2/catch.hpp>

#include "engine/run/refill.hpp"

using namespace onehop;
using namespace onehop::run;

namespace {
constexpr Instant now{1s};
constexpr Bytes frame{1514};

/// of(...): a pacer that has all its tokens, or none.
Instant of(RateGrant grant, Bytes backlog, bool has_tokens = true, bool has_back_pressure = true) {
  protocol::Pacer pacer;
  pacer.set(grant.rate, grant.backlog_max, now);
  if (!has_tokens) pacer.spend(grant.backlog_max);
  return refill_at(now, grant, pacer,
                   {.backlog = backlog, .frame = frame, .has_back_pressure = has_back_pressure});
}
}  // namespace

TEST_CASE("the queue is refilled when three fifths of the backlog limit have drained") {
  const RateGrant grant{
      .rate = mbit_per_s(800),
      .backlog_max = Bytes{300'000}};  // 100 bytes a microsecond: three fifths in 1.8 ms
  CHECK(of(grant, Bytes{300'000}) == now + 1800us);
  CHECK(of(grant, Bytes{220'000}) == now + 1ms);
  CHECK(of(grant, Bytes{100'000}) == now + refill_nap_min);  // three fifths are free already
  CHECK(of(grant, Bytes{0}, true, false) ==
        now + 1800us);  // nothing is known of the queue: by the rate alone
  CHECK(of({.rate = mbit_per_s(80), .backlog_max = Bytes{400'000}}, Bytes{400'000}) ==
        now + refill_nap_max);
}

TEST_CASE("reports may wait while what drains until the next refill still stands") {
  const RateGrant grant{.rate = mbit_per_s(800), .backlog_max = Bytes{300'000}};
  const auto is_filled = [&](Bytes backlog, bool has_back_pressure = true) {
    return is_well_filled(
        grant, {.backlog = backlog, .frame = frame, .has_back_pressure = has_back_pressure});
  };
  CHECK((is_filled(Bytes{300'000}) && is_filled(Bytes{180'000})));
  CHECK_FALSE((is_filled(Bytes{179'999}) || is_filled(Bytes{0})));
  CHECK_FALSE(is_filled(Bytes{300'000}, false));  // nothing is known of the queue
}

TEST_CASE("where the rate is the limit, a higher one is looked out for, unless the user set it") {
  const RateGrant slow{.rate = mbit_per_s(5), .backlog_max = Bytes{12'000}};
  CHECK(of(slow, Bytes{0}, false) == now + refill_nap_rate_max);
  RateGrant final = slow;
  final.is_rate_final = true;
  CHECK(of(final, Bytes{0}, false) == now + refill_nap_max);
  final.rate = mbit_per_s(100);
  CHECK(of(final, Bytes{0}, false) <= now + refill_nap_rate_max);
}

TEST_CASE("a law that wants to look at the queue is woken for it") {
  const RateGrant grant{
      .rate = mbit_per_s(80), .backlog_max = Bytes{400'000}, .poll_interval = 700us};
  CHECK(of(grant, Bytes{400'000}) == now + 700us);
}

// Each batch is one packet, and a timer, to the shaper below.
TEST_CASE("a batch begins when there is room for all of it, or when the queue could run dry") {
  const RateGrant grant{.rate = mbit_per_s(600), .backlog_max = Bytes{640'000}};
  const Bytes batch = frame * 44;
  const auto is_worth = [&](Bytes room, Bytes backlog, bool has_back_pressure = true) {
    return is_batch_worth(
        grant, {.backlog = backlog, .frame = frame, .has_back_pressure = has_back_pressure}, room,
        batch);
  };
  CHECK(is_worth(batch, Bytes{570'000}));
  CHECK_FALSE(is_worth(batch - Bytes{1}, Bytes{570'000}));
  CHECK_FALSE(
      is_worth(batch - Bytes{1}, Bytes{160'000}));  // a quarter of the limit stands: 2 ms of data
  CHECK(is_worth(batch - Bytes{1}, Bytes{159'999}));
  CHECK(is_worth(batch - Bytes{1}, Bytes{570'000}, false));  // nothing is known of the queue
  // A link that takes 200 KB at one instant: a queue of less would send a short aggregate, whatever
  // its share of the limit.
  RateGrant bursty = grant;
  bursty.backlog_low = Bytes{200'000};
  const auto is_worth_to_bursts = [&](Bytes backlog) {
    return is_batch_worth(bursty, {.backlog = backlog, .frame = frame, .has_back_pressure = true},
                          frame, batch);
  };
  CHECK(is_worth_to_bursts(Bytes{199'999}));
  CHECK_FALSE(is_worth_to_bursts(Bytes{200'000}));
  const RateGrant narrow{
      .rate = mbit_per_s(20),
      .backlog_max = Bytes{40'000}};  // less than a batch: by three fifths of the limit
  const auto is_worth_there = [&](Bytes room) {
    return is_batch_worth(
        narrow, {.backlog = narrow.backlog_max - room, .frame = frame, .has_back_pressure = true},
        room, batch);
  };
  CHECK(is_worth_there(Bytes{24'000}));
  CHECK_FALSE(is_worth_there(Bytes{23'999}));
}
