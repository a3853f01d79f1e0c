// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FluidLink: an engine core, a lower queue, a link and a receiver in virtual time, for laws in
// closed loop.
//
//   source ─▶ core (wakes every `nap`, fills to backlog_max, tokens) ─▶ lower queue ─▶ link ─▶ ring
//   ─▶ app buffer ─▶ disk
//
// Whole frames, steps of 20 us, no randomness. The core publishes its report before or after it
// fills the queue, as real ports differ. Test code; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "control/law/controller.hpp"

namespace onehop::test {

struct FluidParams {
  BytesPerSecond link = mbit_per_s(600);  ///< wire
  BytesPerSecond disk{};                  ///< payload; 0: no limit
  Nanos nap{1ms};                         ///< between wake-ups of the core
  int late_every = 0;                     ///< each such wake-up is late by `late`; 0: none
  Nanos late{0};
  Nanos tick{1ms};  ///< between steps of the law
  Nanos rtt{1ms};   ///< without queueing
  bool is_report_after_fill = true;
  std::int64_t queue_packets_max = 1000;
  QueueScope scope = QueueScope::lower_queue;
  Bytes app_capacity{mib(16)};
  BytesPerSecond foreign{};                  ///< another flow's wire rate into the same queue
  std::int64_t token_start_bytes = 1 << 30;  ///< what the pacer lets go at once at the start
  std::int64_t loss_permille = 0;
  BytesPerSecond core_max{};    ///< what the sender's CPU can do; 0: no limit
  Nanos report_interval{0};     ///< of the peer; 0: srtt/4, or what the law asks for
  bool obeys_interval = false;  ///< the peer's reports are as far apart as the law asks
  Bytes ring_capacity{mib(4)};
  bool is_delay_seen = false;  ///< round trips hold the queue, also where the core cannot read it
};

class FluidLink {
 public:
  static constexpr std::int64_t wire = 1514, payload = 1400;
  static constexpr Nanos step{20us};

  FluidLink(law::Controller& law, const FluidParams& params) : p{params}, law_{law} {
    if (p.is_delay_seen) report.srtt = report.rtt = p.rtt;  // the path was proven
  }

  /// run advances by `span`.
  void run(Nanos span) {
    for (const Instant end = now + span; now < end; now += step) advance();
  }
  void open_window() {
    window = {};
    window.opened_at = now;
  }

  struct Window {
    Instant opened_at{};
    Wide occupancy_sum = 0;
    std::int64_t steps = 0, occupancy_max = 0, drained = 0, written = 0, empty_steps = 0;
    [[nodiscard]] Bytes mean() const {
      return {steps == 0 ? 0 : static_cast<std::int64_t>(occupancy_sum / steps)};
    }
  };
  /// rate of the link's use in the window, wire.
  [[nodiscard]] BytesPerSecond drained_rate() const {
    return Bytes{window.drained} / (now - window.opened_at);
  }
  [[nodiscard]] BytesPerSecond written_rate() const {
    return Bytes{window.written} / (now - window.opened_at);
  }

  FluidParams p;
  Instant now{1s};
  Window window;
  std::int64_t queue = 0, refused = 0, peak = 0;  // wire bytes of ours, frames, wire bytes
  bool has_data = true;
  bool has_feedback = true;
  bool is_telemetry_frozen = false;
  bool has_lower_reading = false;  ///< a qdisc dump with each tick
  RateGrant grant{};
  PathReport report{};
  law::LinkSample sample{};
  std::optional<PathReport> lie;  ///< replaces the peer's fields

 private:
  struct InFlight {
    Instant due;
    std::int64_t bytes;
  };

  void advance() {
    drain();
    receive();
    if (now >= wake_at_) {
      wake();
      const bool is_late = p.late_every > 0 && ++wakeups_ % p.late_every == 0;
      wake_at_ = now + p.nap + (is_late ? p.late : 0ns);
    }
    if (now >= tick_at_) {
      tick();
      tick_at_ = now + p.tick;
    }
    peak = std::max(peak, queue);
    window.occupancy_sum += queue;
    ++window.steps;
    window.occupancy_max = std::max(window.occupancy_max, queue);
    if (queue == 0) ++window.empty_steps;
  }

  void drain() {
    // Foreign bytes stand in the same FIFO: service is shared as the queue is.
    foreign_queue_ += (p.foreign * step).count;
    link_credit_ += p.link.count * step.count() % 1'000'000'000;
    std::int64_t can = (p.link * step).count + link_credit_ / 1'000'000'000 + carry_;
    link_credit_ %= 1'000'000'000;
    if (queue + foreign_queue_ == 0) {
      carry_ = 0;
      return;
    }
    while (can >= wire && queue + foreign_queue_ >= wire) {
      can -= wire;
      share_ += queue;
      const std::int64_t both = queue + foreign_queue_;
      if (queue >= wire && (share_ >= both || foreign_queue_ < wire)) {
        share_ = std::max<std::int64_t>(share_ - both, 0);
        queue -= wire;
        drained_ += wire;
        window.drained += wire;
        if (++frame_ * 619 % 1000 >= p.loss_permille)
          flight_.push_back({now + p.rtt / 2, payload});
        else
          ++lost_;
      } else {
        foreign_queue_ = std::max<std::int64_t>(foreign_queue_ - wire, 0);
      }
    }
    carry_ = queue + foreign_queue_ >= wire ? can : 0;
  }

  void receive() {
    std::size_t n = 0;
    for (; n < flight_.size() && flight_[n].due <= now; ++n)
      app_ += flight_[n].bytes, received_ += flight_[n].bytes;
    flight_.erase(flight_.begin(), flight_.begin() + static_cast<std::ptrdiff_t>(n));
    disk_credit_ = p.disk.count == 0 ? app_ : disk_credit_ + (p.disk * step).count;
    const std::int64_t out = std::min(app_, disk_credit_);
    is_disk_busy_ = p.disk.count != 0 && app_ > 0 && out < app_;
    disk_credit_ = app_ == out ? 0 : disk_credit_ - out;
    app_ -= out;
    written_ += out;
    window.written += out;
    const Nanos asked = p.obeys_interval ? grant.feedback_interval : p.report_interval;
    const Nanos interval = asked > 0ns ? asked : std::max<Nanos>(srtt() / 4, 2ms);
    if (has_feedback && now - feedback_at_ >= interval) {
      feedback_at_ = now;
      report.rx_ring = {.at = now + 5s,
                        .occupancy = {0},
                        .drained_total = {received_},
                        .capacity = p.ring_capacity,
                        .scope = QueueScope::own_ring};
      report.app_buffer = {.at = now + 5s,
                           .occupancy = {app_},
                           .drained_total = {written_},
                           .capacity = p.app_capacity,
                           .scope = QueueScope::own_ring,
                           .is_backlogged = is_disk_busy_};
      report.feedback_at = now;
      report.srtt = report.rtt = srtt();
      report.packets_lost_total = static_cast<std::uint64_t>(lost_);
    }
  }
  [[nodiscard]] Nanos srtt() const {
    const Nanos queueing = p.scope == QueueScope::lower_queue || p.is_delay_seen
                               ? std::min<Nanos>(time_for({queue + foreign_queue_}, p.link), 1s)
                               : 0ns;
    return p.rtt + queueing;
  }

  void publish() {
    if (is_telemetry_frozen) return;
    report.at = now;
    const QueueTelemetry last = report.tx_queue;
    report.tx_queue = {.at = now,
                       .occupancy = {p.scope == QueueScope::lower_queue ? queue : 0},
                       .drained_total = {drained_},
                       .refused_total = static_cast<std::uint64_t>(refused),
                       .scope = p.scope};
    report.tx_step = report.tx_queue.drained_total - last.drained_total;
    report.tx_step_backlog = last.occupancy;
    report.tx_step_span = last.at == Instant{} ? 0ns : now - last.at;
    report.sent_total = {sent_};
    report.packets_reported_total = report.packets_sent_total =
        static_cast<std::uint64_t>(sent_ / wire);
    report.offered = has_data ? mib(64) : Bytes{0};
    report.payload_per_frame = {payload};
    report.wire_per_frame = {wire};
    published_ = report;
  }

  void wake() {
    ++report.counters.turns_total;
    ++report.counters.wakeups_total;
    if (!p.is_report_after_fill) publish();
    if (now - feedback_at_ > 1h) feedback_at_ = now;
    if (!is_started_) tokens_ = p.token_start_bytes, is_started_ = grant.backlog_max.count > 0;
    tokens_ = std::min(tokens_ + (grant.rate * (now - filled_at_)).count, grant.backlog_max.count);
    std::int64_t core = p.core_max.count == 0 ? INT64_MAX : (p.core_max * (now - filled_at_)).count;
    filled_at_ = now;
    const bool has_push_back =
        p.scope == QueueScope::lower_queue;  // else the core sees no queue and tokens alone hold it
    while (has_data && tokens_ >= wire && (!has_push_back || queue < grant.backlog_max.count) &&
           core >= wire) {
      if (p.scope == QueueScope::lower_queue &&
          (queue + foreign_queue_) / wire >= p.queue_packets_max) {
        ++refused;
        break;
      }
      if (p.scope != QueueScope::lower_queue && queue / wire >= p.queue_packets_max)
        ++lost_, ++refused;  // dropped unseen
      else
        queue += wire;
      tokens_ -= wire;
      core -= wire;
      sent_ += wire;
    }
    if (p.is_report_after_fill) publish();
  }

  void tick() {
    sample.at = now;
    sample.path = published_;
    if (lie) {
      sample.path.rx_ring = lie->rx_ring;
      sample.path.app_buffer = lie->app_buffer;
      sample.path.rate_offer = lie->rate_offer;
    }
    // Without a reading of now, an old one still tells of others' bytes.
    auto& lower = sample.facts.lower_queue.emplace();
    lower = {.value = {.foreign = {foreign_queue_}}, .at = now - 9ms, .period = 4ms};
    if (has_lower_reading) {
      lower.at = now;
      lower.value.queue = {.at = now,
                           .occupancy = {queue + foreign_queue_},
                           .drained_total = {drained_},
                           .capacity = {p.queue_packets_max * wire},
                           .scope = QueueScope::lower_queue};
    }
    grant = law_.step(sample);
  }

  law::Controller& law_;
  Instant wake_at_{now}, tick_at_{now}, filled_at_{now}, feedback_at_{now};
  std::int64_t foreign_queue_ = 0, link_credit_ = 0, carry_ = 0, share_ = 0, drained_ = 0,
               sent_ = 0, lost_ = 0, frame_ = 0;
  std::int64_t app_ = 0, received_ = 0, written_ = 0, disk_credit_ = 0, tokens_ = 0;
  int wakeups_ = 0;
  bool is_disk_busy_ = false, is_started_ = false;
  std::vector<InFlight> flight_;
  PathReport published_{};
};

inline double ms_of_data(std::int64_t bytes, BytesPerSecond link) {
  return static_cast<double>(bytes) / static_cast<double>(link.count) * 1e3;
}
inline double use(const FluidLink& link) {
  return static_cast<double>(link.drained_rate().count) / static_cast<double>(link.p.link.count);
}

}  // namespace onehop::test
