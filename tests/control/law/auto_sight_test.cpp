// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AutoLaw where what it knows is late: a physical rate that has just changed, and a queue that is read after the fact.
#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include "control/law/auto_law.hpp"
#include "tests/control/law/law_sample.hpp"

namespace onehop::law {
namespace {

using test::fact;
using test::SampleMaker;

// Goal:   right after a change of the physical rate v_1 may be wrong by a factor of two, and the queue is kept whole meanwhile.
// Method: by hand: a queue in its dead band; the physical rate falls to 0.6. A port that pushes back, and one that does not.
// Bounds: 2 v_1 for 20 ms where the port's backlog limit holds the queue, 1.02 v_1 before, after, and where nothing holds it.
TEST_CASE("auto grants twice the drain while the physical rate has just changed and the port holds the queue", "[control][law][auto]") {
  const bool is_held = GENERATE(true, false);
  CAPTURE(is_held);
  AutoLaw law{{}};
  SampleMaker make;
  const auto ratio_after = [&](Nanos span, int mbps) {
    for (Nanos t{0}; t < span; t += 1ms) {
      make.step(1ms, {75'000}, {120'000});
      make.sample.path.tx_queue.scope = is_held ? QueueScope::lower_queue : QueueScope::none;
      make.know({120'000});
      make.sample.facts.phy_rate = fact(mbit_per_s(mbps), make.sample.at);
      make.sample.facts.aggregate_max = fact(Bytes{75'000}, make.sample.at, Nanos{0});
      law.step(make.sample);
    }
    const BufferRow& row = law.trace().buffers[0];
    const auto beta = static_cast<double>(law.trace().details.beta->count) * 1400 / 1514;
    return (static_cast<double>(row.rate.count) - beta) / static_cast<double>(row.drain.count);
  };
  CHECK(ratio_after(100ms, 1000) == Approx(1.02).epsilon(0.005));
  CHECK(ratio_after(2ms, 600) == Approx(is_held ? 2.0 : 1.02).epsilon(0.005));
  CHECK(ratio_after(17ms, 600) == Approx(is_held ? 2.0 : 1.02).epsilon(0.005));
  CHECK(ratio_after(2ms, 600) == Approx(1.02).epsilon(0.005));
}

// Goal:   what stands above a blind port is known although the queue is read late: the reading, and what we did since.
// Method: by hand: 75 KB a millisecond leave, 100 KB stand, and each reading is 10 ms old. Then we pause for 3 ms, or hand over twice as much.
// Bounds: 100 KB; after the pause nothing, and after the burst 225 KB more, while all readings still say 100 KB.
TEST_CASE("auto knows what stands above a blind port from a late reading and from what it handed over since", "[control][law][auto]") {
  const std::int64_t sent_per_ms = GENERATE(0, 75'000, 150'000);
  CAPTURE(sent_per_ms);
  constexpr Bytes left{75'000}, standing{100'000};
  constexpr Nanos age = 10ms;
  AutoLaw law{{}};
  SampleMaker make;
  std::vector<QueueTelemetry> queues;
  const auto play = [&](Nanos span, Bytes sent) {
    for (Nanos t{0}; t < span; t += 1ms) {
      const Bytes stands = queues.empty() ? standing : std::max(queues.back().occupancy + sent - left, Bytes{0});
      make.step(1ms, queues.empty() ? left : queues.back().occupancy + sent - stands, stands);
      queues.push_back(make.sample.path.tx_queue);
      make.sample.path.tx_queue.scope = QueueScope::none;
      if (queues.size() <= 10) continue;
      ExactQueue exact{.queue = queues[queues.size() - 11], .sensor = QueueSensor::mac};
      exact.queue.scope = QueueScope::lower_queue;
      make.sample.facts.exact_queue = fact(exact, exact.queue.at, age);
      law.step(make.sample);
    }
    return static_cast<double>(law.trace().buffers[0].occupancy.count) * 1514 / 1400;
  };
  REQUIRE(play(200ms, left) == Approx(100'000).margin(4000));
  const double now = play(3ms, {sent_per_ms});
  REQUIRE(make.sample.facts.exact_queue->value.queue.occupancy == standing);
  CHECK(now == Approx(std::max<std::int64_t>(0, 100'000 + 3 * (sent_per_ms - 75'000))).margin(6000));
}

}  // namespace
}  // namespace onehop::law
