// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/link/wifi_facts.hpp"

#include <algorithm>

namespace onehop::link {

namespace {

Bytes as_bytes(std::uint64_t count) noexcept { return {static_cast<std::int64_t>(count)}; }

std::uint64_t bytes_of(const StationMessage& station) noexcept {
  return station.tx_bytes_total.value_or(0) + station.rx_bytes_total.value_or(0);
}

Nanos airtime_of(const StationMessage& station) noexcept {
  return station.tx_airtime_total.value_or(Nanos{0}) + station.rx_airtime_total.value_or(Nanos{0});
}

}  // namespace

std::uint64_t GrowingTotal::add(std::uint64_t reading, bool is_new) noexcept {
  const auto now = static_cast<std::uint32_t>(reading);
  // If no report says that the counter restarted: a step of more than half the range cannot be 2
  // GiB between two polls.
  if (!last_)
    total_ = reading;
  else if (const std::uint32_t step = now - *last_; !is_new && step < std::uint32_t{1} << 31)
    total_ += step;
  last_ = now;
  return total_;
}

void WifiFacts::add_station(const StationMessage& station, Instant at, Nanos period,
                            law::LinkFacts& facts) {
  // Bytes wrap within a minute, packets in half a day. Where packets fell, the peer has associated
  // anew and all counters of its entry began anew. At their wrap one step of each is lost.
  const std::uint64_t packets = station.tx_packets_total.value_or(packets_);
  const bool is_new = packets < packets_;
  packets_ = packets;
  if (station.tx_rate) facts.phy_rate = {station.tx_rate->rate, at, period};
  if (station.txq && station.txq->backlog_bytes && station.txq->tx_bytes_total) {
    const TxqCounters& txq = *station.txq;
    law::QueueReading queue{.sensor = law::QueueSensor::txq};
    queue.queue = {.at = at,
                   .occupancy = as_bytes(*txq.backlog_bytes),
                   .drained_total = as_bytes(drained_.add(*txq.tx_bytes_total, is_new)),
                   .refused_total = txq_drops_.add(txq.drops_total.value_or(0), is_new),
                   .scope = QueueScope::lower_queue};
    facts.exact_queue = {queue, at, period};
  }
  if (station.tx_packets_total && station.tx_retries_total && station.tx_failed_total) {
    facts.mac = {{.tx_frames_total = frames_.add(*station.tx_packets_total, is_new),
                  .tx_retries_total = retries_.add(*station.tx_retries_total, is_new),
                  .tx_failed_total = failed_.add(*station.tx_failed_total, is_new)},
                 at,
                 period};
  }
  if (airtime_of(station) > Nanos{0})
    facts.own_airtime = {
        {.tx_total = station.tx_airtime_total, .rx_total = station.rx_airtime_total}, at, period};
}

void WifiFacts::add_survey(const SurveyMessage& survey, Instant at, Nanos period,
                           law::LinkFacts& facts) {
  if (!survey.active_total) return;
  facts.channel = {
      {.active_total = *survey.active_total, .busy_total = survey.busy_total}, at, period};
}

bool WifiFacts::is_active(const StationMessage& station, Nanos span) const noexcept {
  const auto last = std::ranges::find(last_list_, station.mac, &Activity::mac);
  if (last == last_list_.end()) return false;  // it has just come: the next list tells
  const std::uint64_t bytes = bytes_of(station);
  if (bytes >= last->bytes && as_bytes(bytes - last->bytes) > active_rate_min * span) return true;
  return (airtime_of(station) - last->airtime) * 1000 > span * active_airtime_min.permille;
}

void WifiFacts::add_list(std::span<const StationMessage> stations,
                         const std::optional<MacAddress>& peer, Instant at, Nanos period,
                         law::LinkFacts& facts) {
  if (listed_at_ && at > *listed_at_) {
    std::int32_t active = 1;
    for (const StationMessage& station : stations) {
      const bool is_peer = peer ? station.mac == *peer : stations.size() == 1;
      if (!is_peer && is_active(station, at - *listed_at_)) ++active;
    }
    facts.stations = {active, at, period};
  }
  last_list_.clear();
  for (const StationMessage& station : stations)
    last_list_.push_back(
        {.mac = station.mac, .bytes = bytes_of(station), .airtime = airtime_of(station)});
  listed_at_ = at;
}

}  // namespace onehop::link
