// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LinkModel: what one law knows of its own lower queue and of the link below it. Wire bytes.
//
//   sample ──▶ observe()   C, alpha (capacity.hpp)   view (queue_view.hpp, HiddenQueue)
//   view   ──▶ read()      v_1 (drain_meter.hpp)     S (SawtoothMeter)
//   v_1, C ──▶ set_limit() L (aggregate_meter.hpp)   E (capacity.hpp)
//
// A law updates it once in each step and reads it from then on. Safe-range calls read() alone. Laws
// that fall back to safe-range share theirs with it, so that v_1 stays when the mode changes. Pure.
#pragma once

#include <algorithm>

#include "control/law/estimate/aggregate_meter.hpp"
#include "control/law/estimate/capacity.hpp"
#include "control/law/estimate/drain_meter.hpp"
#include "control/law/estimate/queue_view.hpp"
#include "control/law/safe_range_params.hpp"
#include "engine/base/check.hpp"

namespace onehop::law {

// HiddenQueue: whether an exact queue shows what the port has below it, or hides it.
//
//   port ──▶ [ exact queue ] ──▶ [ driver's own queue ] ──▶ link
//              always empty       all of our backlog
//
// mac80211 hands a frame on as soon as the driver takes it. A driver that takes all there is leaves
// the station's queue empty, whatever waits for the air. Such a reading says nothing of our
// backlog, and a law that took it for the backlog would believe that the link is never limited. The
// exact queue shows our bytes if a quarter of the port's are in it at any moment of 50 ms.
class HiddenQueue {
 public:
  /// step corrects the view's least backlog where the exact queue hides it.
  void step(Instant now, Bytes frame, QueueView& view) noexcept {
    const bool has_backlog =
        view.has_push_back && view.is_exact && view.queue.occupancy >= frame * backlog_frames_min;
    const bool is_shown =
        view.backlog_least.count * 1000 >= view.queue.occupancy.count * shown_permille;
    if (has_backlog && is_shown) is_hidden_ = false;
    // A short backlog is no proof of either, and nor is the first reading.
    if (!has_backlog || is_shown || since_ == Instant{}) since_ = now;
    if (now - since_ >= span) is_hidden_ = true;
    if (is_hidden_ && view.has_push_back) view.backlog_least = view.queue.occupancy;
  }

 private:
  // Ours: several exchanges of any link, and some 25 readings. Low: readings between two aggregates
  // are the verdict. High: the start learns nothing of the link for so long.
  static constexpr Nanos span{50ms};
  // Ours. Low: a driver that is fed a little at a time passes for an exact queue. High: readings of
  // different moments pass for a hidden queue.
  static constexpr std::int64_t shown_permille = 250;

  bool is_hidden_ = false;
  Instant since_{};
};

// SawtoothMeter: how the engine core's visits move its lower queue. The core refills up to the
// backlog limit once per wake-up, so the queue is a saw of height S = P v_1 below that limit, and a
// limit of less than S runs dry.
class SawtoothMeter {
 public:
  /// add takes the report that a new reading came with; `drained` is what left since the last one.
  void add(const PathReport& path, Bytes drained) noexcept {
    if (path.at == at_) return;
    const std::uint64_t wakeups = path.counters.wakeups_total - wakeups_total_;
    const std::uint64_t turns = path.counters.turns_total - turns_total_;
    const Nanos span = path.at - at_;
    const bool is_usable =
        has_reading_ && span > Nanos{0} && span < report_gap_max && drained > Bytes{0};
    wakeups_total_ = path.counters.wakeups_total;
    turns_total_ = path.counters.turns_total;
    at_ = path.at;
    has_reading_ = true;
    if (!is_usable) return;
    // A core that never waits has no wake-ups; then each turn is a visit.
    const auto visits = static_cast<std::int64_t>(
        std::clamp<std::uint64_t>(wakeups > 0 ? wakeups : turns, 1, 1'000'000));
    amplitude_ += (drained / visits - amplitude_) / 8;
    period_ += (span / visits - period_) / 8;
  }
  [[nodiscard]] Bytes amplitude() const noexcept { return amplitude_; }  ///< S
  [[nodiscard]] Nanos period() const noexcept { return period_; }        ///< P

 private:
  // Ours. Low: slow cores have no saw. High: a core that was away passes for a slow one.
  static constexpr Nanos report_gap_max{20ms};

  Bytes amplitude_{};
  Nanos period_{1ms};
  std::uint64_t turns_total_ = 0, wakeups_total_ = 0;
  Instant at_{};
  bool has_reading_ = false;
};

struct LinkModel {
  // Ours, least window of v_1. Low: one aggregate more or less is the rate. High: a change of rate
  // is seen late.
  static constexpr Nanos drain_window{2ms};

  explicit LinkModel(const SafeRangeParams& params, const AggregateParams& aggregate = {},
                     const CapacityStep::Bounds& bounds = {}) noexcept
      : capacity{bounds},
        drain{{.window = params.d_1,
               .rate_max = params.rate_max,
               .rate_min = params.rate_min,
               .has_stall_rule = true}},
        aggregates{aggregate} {}

  void observe(const LinkSample& sample) noexcept {
    ONEHOP_CHECK(sample.at >= observed_at);
    step_span = observed_at == Instant{} ? Nanos{0} : sample.at - observed_at;
    observed_at = sample.at;
    phy = fresh(sample.facts.phy_rate, sample.at);
    alpha = capacity.step(phy);
    if (alpha != Gain{}) drain.rescale(alpha);
    view = view_queue(sample);
    hidden.step(sample.at, sample.path.wire_per_frame, view);
  }

  /// read meters `queue`. `quantum`: the largest piece in which the link may take bytes.
  void read(const PathReport& path, const QueueView& queue, Nanos window, Bytes quantum) noexcept {
    if (!has_queue) drain.restart();
    view = queue;
    has_queue = view.is_known();
    if (!has_queue) return;
    drain.set_window(window);
    // The least backlog that any sensor reports: one that is too long would make our own rate look
    // like the link's.
    drain.add({.at = view.queue.at,
               .drained_total = view.queue.drained_total,
               .occupancy = view.backlog_least},
              quantum);
    sawtooth.add(path, drain.newest_drained());
  }

  /// read_link is read() of the observed queue, over whole exchanges, with its aggregates.
  void read_link(const PathReport& path, Nanos window) noexcept {
    if (view.has_push_back) aggregates.add(path, view.backlog_least, exchange);
    read(path, view, std::max(window, exchange * exchanges_per_window), limit);
  }

  void set_aggregate_limit(const LinkSample& sample, BytesPerSecond rate) noexcept {
    set_limit(sample, aggregates.limit(fresh(sample.facts.aggregate_max, sample.at), phy, rate),
              rate);
  }
  void set_limit(const LinkSample& sample, Bytes bytes, BytesPerSecond rate) noexcept {
    limit = bytes;
    exchange = exchange_time(sample.facts, sample.at, limit, rate);
  }

  CapacityStep capacity;
  DrainMeter drain;  ///< v_1
  AggregateMeter aggregates;
  SawtoothMeter sawtooth;  ///< S
  HiddenQueue hidden;
  QueueView view;
  bool has_queue = false;
  const BytesPerSecond* phy = nullptr;  ///< C; of this step's sample
  Gain alpha;                           ///< of C, in this step
  Bytes limit{};                        ///< L
  Nanos exchange{0};                    ///< E
  Nanos step_span{0};
  Instant observed_at{};
};

}  // namespace onehop::law
