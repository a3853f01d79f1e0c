// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AirLink: stations that share one channel, each with a law, an engine core and a MAC queue, in
// virtual time.
//
//   source ─▶ core (refills when and how engine/run/refill.hpp says) ─▶ MAC queue ─┐
//   ... N of them ...                                                              ├▶ channel
//   one transmission at a time, in turn or drawn: wait + min(queue, aggregate) / C; all its frames
//   leave at its end ┘
//
// With an aggregate of one frame and no wait it is a smooth wire. What a station's law is told of
// the link can be taken away, frozen, or falsified, sensor by sensor. No randomness; steps of 10
// us. Test code; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "control/law/controller.hpp"
#include "engine/protocol/pacer.hpp"
#include "engine/run/refill.hpp"

namespace onehop::test {

/// Told is what a law hears of the link. A factor other than 1 is a lie.
struct Told {
  bool has_port = true;  ///< the port pushes back and reads its own queue
  bool has_exact = true, has_phy = true, has_channel = true, has_own_airtime = true,
       has_stations = true, has_mac = true;
  bool has_capacity = false;  ///< the exact queue tells its length
  Nanos exact_late{0};        ///< the exact queue is told so long after it was read
  bool is_exact_frozen = false, is_phy_frozen = false, is_channel_frozen = false,
       is_port_frozen = false;
  bool is_survey_still = false;  ///< the survey is read, and its counters do not move
  double port_occupancy = 1, port_drained = 1, exact_occupancy = 1, exact_drained = 1, phy = 1,
         busy = 1, stations = 1;
};

struct StationParams {
  BytesPerSecond phy = mbit_per_s(1201);
  Nanos tick{1ms};
  Nanos nap{0};                    ///< between wake-ups of the core; 0: as the real one
  bool is_woken_by_drain = false;  ///< the port ends the core's wait when the link has taken frames
  Nanos rtt{1ms};                  ///< without queueing
  std::int64_t loss_permille = 0;
  Instant start_at{};
};

struct ChannelParams {
  Nanos wait{110'500};          ///< AIFS and mean backoff: idle air before each transmission
  Nanos frame_overhead{100us};  ///< preamble, SIFS, Block Ack: busy air of each transmission
  std::int64_t aggregate_bytes = 65'535;
  std::int64_t queue_packets_max = 1000;
  std::uint32_t turn_seed = 0;  ///< who has just had a turn may have the next; 0: turns go round
};
/// wire is a channel that sends frame by frame and waits for nothing.
inline ChannelParams wire_channel() {
  return {.wait = 0ns, .frame_overhead = 0ns, .aggregate_bytes = 1514};
}

class AirLink {
 public:
  static constexpr std::int64_t frame = 1514, payload = 1400;
  static constexpr Nanos step{10us};

  struct Station {
    law::Controller* law = nullptr;
    StationParams p;
    Told told;
    law::Medium medium = law::Medium::wifi;
    // truth
    std::deque<Instant> queue;  // arrival of each frame
    std::int64_t sent = 0, drained = 0, lost = 0, refused = 0, received = 0;
    Nanos air{0};
    bool has_data = true;
    RateGrant grant{};
    law::LinkSample sample{};
    // window
    std::int64_t window_drained = 0, queue_max = 0;
    Wide queue_sum = 0;
    std::int64_t steps = 0, empty_steps = 0;
    std::vector<float> delays_ms;
    [[nodiscard]] double mean_queue_bytes() const {
      return steps == 0 ? 0 : static_cast<double>(queue_sum) / static_cast<double>(steps);
    }
    [[nodiscard]] double delay_ms(double quantile) {
      if (delays_ms.empty()) return 0;
      const auto n =
          static_cast<std::ptrdiff_t>(quantile * static_cast<double>(delays_ms.size() - 1));
      std::nth_element(delays_ms.begin(), delays_ms.begin() + n, delays_ms.end());
      return static_cast<double>(delays_ms[static_cast<std::size_t>(n)]);
    }

   private:
    friend class AirLink;
    protocol::Pacer pacer;
    PathReport report, published;
    bool is_rx_wanted = true;
    Instant wake_at{}, tick_at{}, feedback_at{}, phy_at{}, channel_at{}, mac_at{};
    std::int64_t loss_phase = 0;
    Instant active_at{};
    struct Arrival {
      Instant due;
      std::int64_t bytes;
    };
    std::deque<Arrival> flight;
  };

  explicit AirLink(const ChannelParams& params) : p{params}, turns_{params.turn_seed} {}

  Station& add(law::Controller& law, const StationParams& params) {
    stations.push_back(std::make_unique<Station>());
    Station& s = *stations.back();
    s.law = &law;
    s.p = params;
    s.wake_at = s.tick_at = std::max(now, params.start_at);
    return s;
  }
  void run(Nanos span) {
    for (const Instant end = now + span; now < end; now += step) advance();
  }
  void open_window() {
    opened_at_ = now;
    for (auto& s : stations)
      s->window_drained = s->queue_max = s->steps = s->empty_steps = 0, s->queue_sum = 0,
      s->delays_ms.clear();
  }
  [[nodiscard]] BytesPerSecond rate(const Station& s) const {
    return Bytes{s.window_drained} / (now - opened_at_);
  }

  /// line_rate is what a station gets with the channel to itself and full aggregates.
  [[nodiscard]] BytesPerSecond line_rate(BytesPerSecond phy) const {
    const std::int64_t full = std::max<std::int64_t>(p.aggregate_bytes / frame, 1) * frame;
    return Bytes{full} / (p.wait + p.frame_overhead + time_for({full}, phy));
  }
  [[nodiscard]] double use(const Station& s) const {
    return static_cast<double>(rate(s).count) / static_cast<double>(line_rate(s.p.phy).count);
  }

  ChannelParams p;
  Instant now{1s};
  std::vector<std::unique_ptr<Station>> stations;
  Nanos busy_total{0};

 private:
  void advance() {
    serve();
    for (auto& s : stations) {
      if (now < s->p.start_at) continue;
      deliver(*s);
      if (now >= s->wake_at) wake(*s);
      if (now >= s->tick_at) {
        tick(*s);
        s->tick_at = now + s->p.tick;
      }
      const auto bytes = static_cast<std::int64_t>(s->queue.size()) * frame;
      s->queue_sum += bytes;
      s->queue_max = std::max(s->queue_max, bytes);
      if (bytes == 0) ++s->empty_steps;
      ++s->steps;
    }
  }

  void serve() {
    while (now >= free_at_) {
      if (sending_ != nullptr) finish();
      if (!is_waiting_) {
        is_waiting_ = is_any_queued();
        if (!is_waiting_) {
          free_at_ = now + step;  // idle: the wait begins with the next frame
          return;
        }
        free_at_ += p.wait;
        if (p.wait > 0ns) continue;
      }
      start();
    }
  }
  [[nodiscard]] bool is_any_queued() const {
    return std::any_of(stations.begin(), stations.end(),
                       [](const auto& s) { return !s->queue.empty(); });
  }
  /// start: the wait is over. What stands in the queue now is the aggregate.
  void start() {
    is_waiting_ = false;
    if (p.turn_seed != 0) turn_ = turns_() % stations.size();
    for (std::size_t i = 0; i < stations.size() && sending_ == nullptr; ++i) {
      Station& s = *stations[(turn_ + i) % stations.size()];
      if (s.queue.empty()) continue;
      sending_ = &s;
      turn_ = (turn_ + i + 1) % stations.size();
    }
    const std::int64_t limit = std::max<std::int64_t>(p.aggregate_bytes / frame, 1);
    frames_ = std::min(limit, static_cast<std::int64_t>(sending_->queue.size()));
    air_ = p.frame_overhead + time_for({frames_ * frame}, sending_->p.phy);
    free_at_ += air_;
  }
  void finish() {
    Station& s = *sending_;
    for (std::int64_t i = 0; i < frames_; ++i) {
      if (s.delays_ms.size() < 2'000'000)
        s.delays_ms.push_back(
            std::chrono::duration<float, std::milli>(free_at_ - s.queue.front()).count());
      s.queue.pop_front();
      s.drained += frame;
      s.window_drained += frame;
      s.loss_phase += 619;
      if (s.loss_phase % 1000 < s.p.loss_permille)
        ++s.lost;
      else
        s.flight.push_back({free_at_ + s.p.rtt / 2, payload});
    }
    s.air += air_;
    s.active_at = now;
    busy_total += air_;
    if (s.p.is_woken_by_drain) s.wake_at = now;
    sending_ = nullptr;
  }

  void deliver(Station& s) {
    for (; !s.flight.empty() && s.flight.front().due <= now; s.flight.pop_front())
      s.received += s.flight.front().bytes;
    const Nanos queueing = std::min<Nanos>(
        time_for({static_cast<std::int64_t>(s.queue.size()) * frame}, line_rate(s.p.phy)), 1s);
    const Nanos srtt = s.p.rtt + queueing;
    if (now - s.feedback_at < std::max<Nanos>(srtt / 4, 2ms)) return;
    s.feedback_at = now;
    if (s.p.nap == 0ns && s.is_rx_wanted) s.wake_at = now;  // feedback ends the core's wait
    s.report.rx_ring = {.at = now + 5s,
                        .drained_total = {s.received},
                        .capacity = mib(4),
                        .scope = QueueScope::own_ring};
    s.report.app_buffer = {.at = now + 5s,
                           .drained_total = {s.received},
                           .capacity = mib(16),
                           .scope = QueueScope::own_ring};
    s.report.feedback_at = now;
    s.report.srtt = srtt;
    s.report.packets_lost_total = static_cast<std::uint64_t>(s.lost);
  }

  [[nodiscard]] QueueTelemetry read(const Station& s, double occupancy, double drained,
                                    QueueScope scope) const {
    const double standing = static_cast<double>(s.queue.size()) * frame;
    return {.at = now,
            .occupancy = {static_cast<std::int64_t>(standing * occupancy)},
            .drained_total = {static_cast<std::int64_t>(static_cast<double>(s.drained) * drained)},
            .refused_total = static_cast<std::uint64_t>(s.refused),
            .scope = scope};
  }

  void publish(Station& s) {
    if (s.told.is_port_frozen) return;
    PathReport& r = s.report;
    r.at = now;
    r.tx_queue = s.told.has_port
                     ? read(s, s.told.port_occupancy, s.told.port_drained, QueueScope::lower_queue)
                     : QueueTelemetry{};
    r.tx_step = r.tx_queue.drained_total - s.published.tx_queue.drained_total;
    r.tx_step_backlog = s.published.tx_queue.occupancy;
    r.tx_step_span = s.published.at == Instant{} ? 0ns : now - s.published.at;
    r.sent_total = {s.sent};
    r.packets_reported_total = r.packets_sent_total = static_cast<std::uint64_t>(s.sent / frame);
    r.counters.data_bytes_sent_total = static_cast<std::uint64_t>(s.sent / frame * payload);
    r.offered = s.has_data ? mib(64) : Bytes{0};
    r.payload_per_frame = {payload};
    r.wire_per_frame = {frame};
    s.published = r;
  }

  void wake(Station& s) {
    ++s.report.counters.turns_total;
    ++s.report.counters.wakeups_total;
    s.pacer.set(s.grant.rate, std::max(s.grant.backlog_max, Bytes{2 * frame}), now);
    const Bytes seen{static_cast<std::int64_t>(static_cast<double>(s.queue.size()) * frame *
                                               s.told.port_occupancy)};
    Bytes room = s.pacer.allowance(now);
    if (s.told.has_port) room = std::min(room, s.grant.backlog_max - seen);
    Bytes sent{};
    std::uint32_t in_batch = 0;
    const auto below = [&] {
      return run::LowerQueue{
          .backlog = seen + sent, .frame = {frame}, .has_back_pressure = s.told.has_port};
    };
    const Bytes batch = Bytes{frame} * std::max<std::int64_t>(s.grant.batch_frames, 1);
    while (s.has_data && room > sent &&
           (in_batch > 0 || run::is_batch_worth(s.grant, below(), room - sent, batch))) {
      if (static_cast<std::int64_t>(s.queue.size()) >= p.queue_packets_max) {
        ++s.refused;
        break;
      }
      s.queue.push_back(now);
      sent += Bytes{frame};
      in_batch = (in_batch + 1) % std::max(s.grant.batch_frames, 1U);
    }
    s.pacer.spend(sent);
    s.sent += sent.count;
    publish(s);
    s.is_rx_wanted = !run::is_well_filled(s.grant, below());
    s.wake_at = s.p.nap > 0ns ? now + s.p.nap : run::refill_at(now, s.grant, s.pacer, below());
  }

  void tell(Station& s) {
    law::LinkFacts& f = s.sample.facts;
    const Told& t = s.told;
    f.medium = s.medium;
    if (t.has_exact && !t.is_exact_frozen) {
      law::QueueReading exact{
          .queue = read(s, t.exact_occupancy, t.exact_drained, QueueScope::lower_queue),
          .sensor = law::QueueSensor::mac};
      if (t.has_capacity) exact.queue.capacity = Bytes{frame * p.queue_packets_max};
      f.exact_queue = law::Fact<law::QueueReading>{exact, now - t.exact_late, s.p.tick};
    }
    if (!t.has_exact) f.exact_queue.reset();
    if (t.has_phy && !t.is_phy_frozen && now - s.phy_at >= 20ms) {
      s.phy_at = now;
      f.phy_rate = law::Fact<BytesPerSecond>{
          {static_cast<std::int64_t>(static_cast<double>(s.p.phy.count) * t.phy)}, now, 20ms};
    }
    if (!t.has_phy) f.phy_rate.reset();
    if (now - s.channel_at >= 20ms) {
      s.channel_at = now;
      if (t.has_channel && t.is_survey_still && f.channel) {
        f.channel->at = now;
      } else if (t.has_channel && !t.is_channel_frozen) {
        const Nanos busy{static_cast<Nanos::rep>(static_cast<double>(busy_total.count()) * t.busy)};
        f.channel = law::Fact<law::ChannelAirtime>{
            {.active_total = now.time_since_epoch(), .busy_total = busy}, now, 20ms};
      }
      if (t.has_own_airtime)
        f.own_airtime =
            law::Fact<law::OwnAirtime>{{.tx_total = s.air, .rx_total = Nanos{0}}, now, 20ms};
      if (t.has_stations) f.stations = law::Fact<std::int32_t>{active(), now, 20ms};
    }
    if (!t.has_channel) f.channel.reset();
    if (!t.has_own_airtime) f.own_airtime.reset();
    if (!t.has_stations)
      f.stations.reset();
    else if (f.stations)
      f.stations->value = static_cast<std::int32_t>(active() * t.stations);
    if (t.has_mac && now - s.mac_at >= 100ms) {
      s.mac_at = now;
      f.mac = law::Fact<law::MacCounters>{
          {.tx_frames_total = static_cast<std::uint64_t>(s.drained / frame),
           .tx_failed_total = static_cast<std::uint64_t>(s.lost)},
          now,
          100ms};
    }
    if (!t.has_mac) f.mac.reset();
  }
  [[nodiscard]] std::int32_t active() const {
    std::int32_t n = 0;
    for (const auto& s : stations)
      n += now - s->active_at < 1s && s->active_at != Instant{} ? 1 : 0;
    return std::max(n, 1);
  }

  void tick(Station& s) {
    tell(s);
    s.sample.at = now;
    s.sample.path = s.published;
    s.grant = s.law->step(s.sample);
  }

  Instant free_at_{now}, opened_at_{now};
  Station* sending_ = nullptr;
  bool is_waiting_ = false;
  std::int64_t frames_ = 0;
  Nanos air_{0};
  std::size_t turn_ = 0;
  std::minstd_rand turns_;
};

}  // namespace onehop::test
