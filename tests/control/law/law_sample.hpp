// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Hand-made samples for tests of laws: a full frame is 1514 bytes on the wire and 1400 of payload.
// Test code.
#pragma once

#include "control/law/controller.hpp"

namespace onehop::test {

template <class T>
law::Fact<T> fact(T value, Instant at, Nanos period = 20ms) {
  return {.value = value, .at = at, .period = period};
}

/// SampleMaker makes the next sample of a story told by hand: what stands in the queue, what has
/// left it, and when.
struct SampleMaker {
  law::LinkSample sample;

  SampleMaker() {
    sample.at = Instant{1s};
    sample.path.payload_per_frame = {1400};
    sample.path.wire_per_frame = {1514};
    sample.path.offered = mib(1);
    sample.path.srtt = 2ms;
    sample.path.tx_queue.scope = QueueScope::lower_queue;
    sample.facts.medium = law::Medium::wifi;
  }
  /// step moves time on, lets `left` leave the queue and leaves `standing` in it.
  const law::LinkSample& step(Nanos span, Bytes left, Bytes standing) {
    law::LinkSample& s = sample;
    s.at += span;
    s.path.at = s.at;
    s.path.tx_queue.at = s.at;
    s.path.tx_queue.drained_total += left;
    s.path.tx_queue.occupancy = standing;
    s.path.tx_step = left;
    s.path.tx_step_span = span;
    s.path.sent_total = s.path.tx_queue.drained_total + standing;
    s.path.packets_reported_total = s.path.packets_sent_total =
        static_cast<std::uint64_t>(s.path.sent_total.count / 1514);
    s.path.counters.data_bytes_sent_total = s.path.packets_sent_total * 1400;
    ++s.path.counters.turns_total;
    ++s.path.counters.wakeups_total;
    return s;
  }
  /// know renews the facts that are given, as of now.
  void know(Bytes exact_standing) {
    law::QueueReading exact{.queue = sample.path.tx_queue, .sensor = law::QueueSensor::mac};
    exact.queue.at = sample.at;
    exact.queue.occupancy = exact_standing;
    exact.queue.scope = QueueScope::lower_queue;
    sample.facts.exact_queue = fact(exact, sample.at, 1ms);
  }
};

}  // namespace onehop::test
