// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/term/delay_bound.hpp"

#include <algorithm>

namespace onehop::law {

namespace {
// Derived: three of the largest aggregates, so that the medium always finds a whole one. Low: a
// late aggregate runs the queue dry, and a core that naps for a few milliseconds looks like a
// queue. High: delay, for nothing.
constexpr Nanos delay_target{12ms};
// Ours, T: 1.2 C where there is no queue. Low: D swings with the age of a report. High: a queue
// lasts for longer after a fall of C.
constexpr Nanos time_constant{60ms};
// Ours. Low: one aggregate more or less is a tenth of the rate. High: C is of a link that has
// changed.
constexpr Nanos arrival_span{50ms};
// Ours, of C. Low: a slow start, or a link that is given less than it carries for one late PING.
// High: an overshoot, or a queue that stays.
constexpr Gain gain_start{2000}, gain_lowest{750};
}  // namespace

void DelayBound::follow_arrivals(const DelayReading& reading) noexcept {
  if (reading.is_outage) arrived_at_ = Instant{};
  was_used_ = was_used_ && reading.is_used;
  const Nanos span = reading.arrived_at - arrived_at_;
  const Bytes arrived = reading.arrived_total - arrived_;
  const bool is_absurd = arrived_at_ == Instant{} || span < Nanos{0} || arrived < Bytes{0};
  if (!is_absurd && span < arrival_span) return;
  // A rate that was not used may have found more, and never less.
  if (!is_absurd) arrival_ = was_used_ ? arrived / span : std::max(arrival_, arrived / span);
  arrived_ = reading.arrived_total;
  arrived_at_ = reading.arrived_at;
  was_used_ = true;
}

std::optional<BytesPerSecond> DelayBound::step(const DelayReading& reading) noexcept {
  if (reading.rtt <= Nanos{0}) return std::nullopt;
  rtt_min_ = rtt_min_ == Nanos{0} ? reading.rtt : std::min(rtt_min_, reading.rtt);
  if (reading.arrived_at == Instant{}) return reading.rate_start;
  follow_arrivals(reading);
  const Nanos delay = reading.rtt - rtt_min_;
  had_queue_ = had_queue_ || delay > delay_target;
  if (!had_queue_ || arrival_ <= BytesPerSecond{0}) {
    return std::max({arrival_ * gain_start, reading.arrival_rate * gain_start, reading.rate_start});
  }
  return arrival_ *
         std::max(Gain{1000 + (delay_target - delay) * 1000 / time_constant}, gain_lowest);
}

}  // namespace onehop::law
