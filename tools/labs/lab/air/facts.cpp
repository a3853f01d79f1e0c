// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/air/facts.hpp"

#include <algorithm>

namespace onehop::lab::air {

namespace {
constexpr std::uint64_t million = 1'000'000;

template <class T>
law::Fact<T> fact(T value, Instant at, Nanos period) {
  return {.value = std::move(value), .at = at, .period = period};
}

}  // namespace

law::LinkFacts air_facts(const Channel& channel, const AirProfile& profile, Bytes frame_max,
                         const AirReading& reading) {
  const Instant at = reading.at;
  const Nanos period = profile.facts.period;
  const StationCounters& own = channel.counters(reading.station);
  const StationCounters& peer = channel.counters(1 - reading.station);
  law::LinkFacts facts;
  facts.medium = law::Medium::wifi;
  law::QueueReading queue;
  queue.queue = {.at = at,
                 .occupancy = channel.queued(reading.station),
                 .drained_total = own.released_total,
                 .capacity = reading.capacity,
                 .refused_total = reading.refused_total,
                 .scope = QueueScope::lower_queue};
  queue.sensor = law::QueueSensor::model;
  facts.exact_queue = fact(queue, at, period);
  facts.phy_rate = fact(phy_rate(channel.mode()), at, period);
  facts.channel = fact(
      law::ChannelAirtime{.active_total = at - reading.begun, .busy_total = channel.busy_total()},
      at, period);
  facts.own_airtime =
      fact(law::OwnAirtime{.tx_total = own.air_total, .rx_total = peer.air_total}, at, period);
  facts.mac = fact(law::MacCounters{.tx_frames_total = own.sent_mpdus_total,
                                    .tx_retries_total = own.retried_mpdus_total,
                                    .tx_failed_total = own.failed_mpdus_total},
                   at, period);
  // The peer only answers: a channel without contenders is private.
  facts.stations = fact(static_cast<std::int32_t>(profile.channel.stations - 1), at, period);
  const Bytes window = mpdu_bytes(frame_max) * profile.channel.window_mpdus;
  facts.aggregate_max = fact(std::min(profile.channel.aggregate_max, window), at, Nanos{0});
  if (reading.exchange) facts.exchange = fact(*reading.exchange, at, period);
  return facts;
}

Result<AirTeller> AirTeller::open(const std::string& path, const FactsProfile& profile,
                                  std::uint64_t seed) {
  ONEHOP_TRY(publisher, link::FactsPublisher::open(path));
  return AirTeller{std::move(publisher), profile, seed};
}

void AirTeller::tell(Instant now, const law::LinkFacts& facts) {
  // One reading per period, however late we come: missed ones are not made up for.
  next_at_ = std::max(next_at_ + profile_.period, now);
  const bool is_lost = profile_.loss_ppm != 0 && random_() % million < profile_.loss_ppm;
  if (!is_lost) waiting_.push_back({now, facts});
  while (!waiting_.empty() && waiting_.front().read_at + profile_.late <= now) {
    is_heard_ = publisher_.publish(waiting_.front().facts);
    waiting_.pop_front();
  }
}

}  // namespace onehop::lab::air
