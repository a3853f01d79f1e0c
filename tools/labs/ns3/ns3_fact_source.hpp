// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Ns3FactSource: what ns-3's MAC and PHY say of the link, as facts for the laws. All of it is read
// in each tick: a reading costs nothing here. A flow may say that less is told, late, or not every
// time, as poor drivers do. Called in virtual time.
#pragma once

#include <deque>
#include <random>
#include <utility>

#include "control/link/qdisc_source.hpp"
#include "tools/labs/ns3/ns3_port.hpp"
#include "tools/labs/ns3/seam.hpp"

namespace onehop::sim {

class Ns3FactSource final : public link::FactSource {
 public:
  /// `port` is whose bytes in the queue are our own; `flow` says what is told. Both outlive the
  /// source.
  Ns3FactSource(const Air& air, Ns3Port& port, const FlowSpec& flow, std::uint64_t seed)
      : air_{air},
        port_{port},
        flow_{flow},
        age_{static_cast<Nanos::rep>(flow.facts_age_ms * 1e6)},
        random_{seed} {}
  [[nodiscard]] std::string_view name() const noexcept override { return "ns3-mac"; }
  void read(Instant now, law::LinkFacts& facts) override {
    if (flow_.facts == "none") return;
    facts.medium = law::Medium::wifi;
    if (flow_.facts == "medium") return;
    read_backlog(now, facts);
    if (std::uniform_real_distribution{}(random_) >= flow_.facts_loss)
      late_.emplace_back(now, look(now));
    for (; !late_.empty() && now - late_.front().first >= age_; late_.pop_front()) {
      late_.front().second.lower_queue = facts.lower_queue;
      facts = late_.front().second;
    }
  }

  void read_backlog(Instant now, law::LinkFacts& facts) override {
    constexpr Nanos every = link::QdiscSource::period;
    const bool is_queue_told = flow_.facts == "all" || flow_.facts == "queue";
    if (!is_queue_told || (facts.lower_queue && now - facts.lower_queue->at < every)) return;
    facts.lower_queue = {
        {.queue = queue_of(air_.read_link(), now), .sensor = law::QueueSensor::mac}, now, every};
  }

 private:
  static QueueTelemetry queue_of(const LinkReading& reading, Instant now) {
    return {.at = now,
            .occupancy = bytes(reading.queue_bytes),
            .drained_total = bytes(reading.drained_bytes_total),
            .capacity = bytes(reading.capacity_bytes),
            .scope = QueueScope::lower_queue};
  }
  static Bytes bytes(std::uint64_t count) { return {static_cast<std::int64_t>(count)}; }

  [[nodiscard]] law::LinkFacts look(Instant now) {
    const LinkReading reading = air_.read_link();
    const QueueTelemetry queue = queue_of(reading, now);
    const Bytes foreign = std::max(queue.occupancy - port_.standing(), Bytes{0});
    law::LinkFacts facts;
    facts.medium = law::Medium::wifi;
    facts.exact_queue = {
        {.queue = queue, .foreign = foreign, .sensor = law::QueueSensor::mac}, now, period};
    facts.aggregate_max = {bytes(reading.aggregate_max_bytes), now, Nanos{0}};
    if (reading.exchange_ns > 0) facts.exchange = {Nanos{reading.exchange_ns}, now, period};
    if (flow_.facts == "queue") return facts;
    if (reading.phy_rate_bps > 0)
      facts.phy_rate = {bit_per_s(static_cast<std::int64_t>(reading.phy_rate_bps)), now, period};
    facts.channel = {{.active_total = Nanos{reading.active_ns_total},
                      .busy_total = Nanos{reading.busy_ns_total}},
                     now,
                     period};
    facts.own_airtime = {{.tx_total = Nanos{reading.link_tx_ns_total}}, now, period};
    facts.mac = {{.tx_frames_total = reading.mac_frames_total,
                  .tx_retries_total = reading.mac_retries_total,
                  .tx_failed_total = reading.mac_failed_total},
                 now,
                 period};
    if (reading.stations > 0)
      facts.stations = {static_cast<std::int32_t>(reading.stations), now, period};
    return facts;
  }

  static constexpr Nanos period = 20ms;  // of the rate loop's slowest tick
  const Air& air_;
  Ns3Port& port_;
  const FlowSpec& flow_;
  const Nanos age_;
  std::mt19937_64 random_;
  std::deque<std::pair<Instant, law::LinkFacts>> late_;  // read, and not told yet
};

}  // namespace onehop::sim
