// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/stress/player.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/labs/stress/fault_player.hpp"
#include "tools/labs/stress/law_watch.hpp"
#include "tools/labs/stress/receive_watch.hpp"
#include "tools/labs/stress/send_watch.hpp"

namespace onehop::stress {

namespace {

constexpr Nanos recovery_window = 5ms;
constexpr std::int64_t recovered_percent = 90;

std::uint64_t clamp_count(Bytes bytes) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes.count, 0));
}

class Player final : public scenario::WorldWatch {
 public:
  Player(const Schedule& schedule, Tally& tally, std::FILE* series)
      : schedule_{schedule},
        tally_{tally},
        series_{series},
        world_{schedule.world},
        faults_{world_, schedule},
        send_{world_, schedule.world, broken_},
        receive_{world_, schedule, broken_},
        law_{world_, schedule.world,
             schedule.has_facts || (schedule.kinds & bit_of(Fault::facts)) != 0, broken_} {
    world_.set_watch(this);
    world_.port(0).set_watch(&send_);
    world_.port(1).set_watch(&receive_);
  }

  Broken play() {
    world_.start();
    for (const FaultEvent& event : schedule_.events) {
      run_until(Instant{} + event.at);
      if (is_over()) break;
      faults_.begin(event);
      ++tally_.events;
      ++tally_.events_of[static_cast<std::size_t>(event.fault)];
    }
    run_until(Instant{} + schedule_.span);
    faults_.end_all();
    quiet_at_ = world_.now();
    window_at_ = quiet_at_;
    window_drained_ = world_.link().lower_queue(0).drained_total;
    run_until(Instant{} + schedule_.limit);
    judge();
    count();
    return broken_;
  }

  void before_turn(scenario::Actor actor, Instant now) override {
    if (actor == scenario::Actor::sender) send_.before_turn(now);
    if (actor == scenario::Actor::receiver) ring_ = world_.port(1).rx_ring(now).occupancy;
  }
  void after_turn(scenario::Actor actor, Instant now) override {
    if (actor == scenario::Actor::sender) {
      send_.after_turn(now);
    } else if (actor == scenario::Actor::receiver) {
      receive_.after_turn(now);
    } else {
      law_.after_tick(now);
      sample(now);
    }
  }
  Nanos delay(scenario::Actor) override { return faults_.delay(); }
  void on_block(const BlockRef& block, std::uint64_t wrong_bytes) override {
    receive_.on_block(world_.now(), block, wrong_bytes);
  }

 private:
  [[nodiscard]] bool is_over() const {
    return broken_.is_broken() || world_.outcome().is_finished || world_.outcome().has_failed;
  }

  /// Faults end at their own times, so the world runs from one to the next.
  void run_until(Instant until) {
    while (!is_over() && world_.now() < until) {
      const Instant next = std::min(until, faults_.next_end());
      if (next > world_.now()) step_to(next);
      if (!is_over()) faults_.end_due(world_.now());
    }
  }
  void step_to(Instant next) {
    while (!is_over() && world_.now() < next)
      (void)world_.run(std::min<Nanos>(next - world_.now(), broken_check_span));
  }
  static constexpr Nanos broken_check_span = 1ms;

  void judge() {
    const scenario::Outcome& outcome = world_.outcome();
    if (outcome.has_failed)
      broken_.say(world_.now(), fmt::format("the session ended by itself: event {}",
                                            static_cast<int>(outcome.failure)));
    else if (!outcome.is_finished)
      broken_.say(world_.now(), fmt::format("the transfer stands still: {} of {} bytes on disk",
                                            outcome.bytes_checked, world_.bytes_total()));
    else if (outcome.bytes_checked != world_.bytes_total())
      broken_.say(world_.now(), fmt::format("{} bytes on disk instead of {}", outcome.bytes_checked,
                                            world_.bytes_total()));
  }

  void count() {
    ++tally_.schedules;
    for (std::size_t i = 0; i < faults; ++i) tally_.schedules_with[i] += schedule_.kinds >> i & 1;
    tally_.schedules_with_all += schedule_.kinds == every_fault ? 1 : 0;
    tally_.virtual_us += static_cast<std::uint64_t>(world_.now().time_since_epoch() / 1us);
    tally_.bytes += world_.outcome().bytes_checked;
    tally_.retransmitted_bytes += world_.sender().totals().retransmitted_bytes;
    tally_.frames += world_.sender().totals().packets_sent;
    tally_.tx_refused_frames += send_.queue().refused_total;
    tally_.rx_refused_frames += receive_.ring().refused_total;
    if (!has_recovered_) ++tally_.unrecovered;
  }

  /// One row per control tick: what each buffer holds, and where the lower queue is in its safe
  /// range.
  void sample(Instant now) {
    const auto us = static_cast<std::uint64_t>(std::min<Nanos>(now - sampled_at_, 20ms) / 1us);
    sampled_at_ = now;
    const PathReport path = world_.sender_report();
    const Bytes standing = send_.queue().occupancy;
    const bool is_flowing = path.offered > Bytes{0} && !path.is_credit_limited;
    if (is_flowing && us > 0) {
      tally_.tx_queue.add(clamp_count(standing), us);
      tally_.rx_ring.add(clamp_count(ring_), us);
      tally_.app_buffer.add(clamp_count(receive_.buffer().occupancy), us);
      if (standing <= Bytes{0}) tally_.underflow_us += us;
      const BytesPerSecond v = world_.link().config(0).rate;
      const Bytes under = v * Gain{2000} * d_1,
                  over = world_.link().config(0).queue_capacity - v * Gain{2500} * d_1;
      (standing < under  ? tally_.below_us
       : standing > over ? tally_.above_us
                         : tally_.inside_us) += us;
    }
    if (quiet_at_ != Instant{}) watch_recovery(now, is_flowing);
    if (series_ != nullptr) write_row(now, path);
  }

  void watch_recovery(Instant now, bool is_flowing) {
    if (has_recovered_ || now - window_at_ < recovery_window) return;
    const Bytes drained = world_.link().lower_queue(0).drained_total - window_drained_;
    BytesPerSecond rate = world_.link().config(0).rate;
    if (schedule_.world.law.starts_with("fixed")) rate = std::min(rate, world_.grant().rate);
    if (is_flowing &&
        drained.count * 100 >= (rate * (now - window_at_)).count * recovered_percent) {
      has_recovered_ = true;
      tally_.recovery_us.add(static_cast<std::uint64_t>((window_at_ - quiet_at_) / 1us));
    }
    window_at_ = now;
    window_drained_ = world_.link().lower_queue(0).drained_total;
  }

  void write_row(Instant now, const PathReport& path) {
    const law::LawTrace& trace = world_.law().trace();
    const RateGrant grant = world_.grant();
    fmt::print(series_, "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", schedule_.index,
               now.time_since_epoch() / 1us, faults_.active_names(),
               world_.link().config(0).rate.count, grant.rate.count, grant.backlog_max.count,
               send_.queue().occupancy.count, ring_.count, receive_.buffer().occupancy.count,
               trace.buffers[0].target.count, trace.buffers[0].drain.count,
               trace.buffers[1].takes_part ? 1 : 0, trace.buffers[2].takes_part ? 1 : 0,
               send_.queue().refused_total + receive_.ring().refused_total, path.srtt / 1us);
  }

  const Schedule& schedule_;
  Tally& tally_;
  std::FILE* series_;
  Broken broken_;
  scenario::World world_;
  FaultPlayer faults_;
  SendWatch send_;
  ReceiveWatch receive_;
  LawWatch law_;
  Instant sampled_at_{}, quiet_at_{}, window_at_{};
  Bytes window_drained_{};
  Bytes ring_{};  // in the receive ring when the core last came to it: afterwards it is empty
  bool has_recovered_ = false;
};

}  // namespace

std::string series_header() {
  return "schedule,at_us,faults,link_rate,granted_rate,backlog_max,tx_queue,rx_ring,app_buffer,"
         "target,drain,rx_ring_takes_part,"
         "app_buffer_takes_part,refused_frames,srtt_us\n";
}

Broken play_schedule(const Schedule& schedule, Tally& tally, std::FILE* series) {
  Player player{schedule, tally, series};
  return player.play();
}

}  // namespace onehop::stress
