// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/ends/pair.hpp"

#include <signal.h>

#include <algorithm>
#include <thread>

#include "engine/base/time.hpp"
#include "engine/wire/frame.hpp"
#include "tools/labs/bench/ends/child.hpp"
#include "tools/labs/bench/ends/pair_cost.hpp"

namespace onehop::bench {

namespace {

constexpr Nanos start_patience = 15s;  // building a session: pairing, TLS, proof of the path
constexpr Nanos answer_patience = 2s;
constexpr Nanos end_patience = 10s;
constexpr Nanos poll = 5ms;  // too low: this process shows in the busy time. Too high: it ends late
constexpr Nanos answer_poll = 200us;
// An amount that takes longer than this is taken to hang
constexpr std::uint64_t slowest_bytes_per_second = 1'000'000;
constexpr double spare_seconds = 60;

/// Runner: one run of a pair, from the first process to the last.
class Runner {
 public:
  explicit Runner(const PairSpec& spec) : spec_{spec} {}

  Result<RunResult> run() {
    if (!spec_.mode.is_counted)
      costs_.softirq_missing = "not counted in this run";
    else if (auto attached = SoftirqMeter::attach(); attached.has_value())
      costs_.softirq.emplace(std::move(attached).value());
    else
      costs_.softirq_missing = "not available: " + attached.error().message();
    costs_.is_whole_life = !spec_.is_flood && spec_.omit_seconds == 0;
    costs_.at_start = costs_.read_machine();
    ONEHOP_TRYV(start());
    if (spec_.omit_seconds > 0) {
      ONEHOP_TRYV(sleep(spec_.omit_seconds));
    }
    costs_.usage.open_span();
    costs_.usage.open_softirq();
    costs_.first.machine = costs_.read_machine();
    if (!costs_.is_whole_life) {
      ONEHOP_TRYV(read_ends(costs_.first));
    }
    ONEHOP_TRYV(measure());
    ONEHOP_TRYV(read_ends(costs_.last));
    costs_.last.machine = costs_.read_machine();
    costs_.usage.close_span();
    ONEHOP_TRYV(stop());
    return costs_.result(spec_);
  }

 private:
  Result<void> start() {
    children_.reserve(spec_.ends.size());
    for (const EndSpec& end : spec_.ends) {
      ONEHOP_TRY(child, Child::start(end.host, end.cpu, spec_.mode.is_counted, end.body));
      costs_.counts_missing = child.counts_missing();
      children_.push_back(std::move(child));
      if (!end.is_sending || spec_.is_flood) {
        ONEHOP_TRYV(wait_state(children_.size() - 1, EndState::ready));
      }
    }
    for (const EndSpec& end : spec_.ends)
      end.board->is_started.store(true, std::memory_order_release);
    for (std::size_t i = 0; i < children_.size(); ++i) {
      ONEHOP_TRYV(wait_state(i, EndState::flowing));
    }
    return success();
  }

  Result<void> wait_state(std::size_t i, EndState wanted) {
    for (Nanos waited{0}; waited < start_patience || spec_.is_waiting; waited += 1ms) {
      for (std::size_t end = 0; end < children_.size(); ++end) {
        ONEHOP_TRYV(check(end));
      }  // it may wait for one that failed
      if (state(i) >= wanted) return success();
      std::this_thread::sleep_for(spec_.is_waiting ? poll : 1ms);
    }
    return Error{ExitCode::timed_out, attempt(i), "nothing flows after 15 s"};
  }

  [[nodiscard]] EndState state(std::size_t i) const {
    return spec_.ends[i].board->state.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::string attempt(std::size_t i) const {
    return spec_.ends[i].is_sending ? "run the sending end" : "run the receiving end";
  }

  Result<void> check(std::size_t i) {
    const Board& board = *spec_.ends[i].board;
    if (state(i) == EndState::failed)
      return Error{static_cast<ExitCode>(board.error_code), attempt(i), board.error.data()};
    if (children_[i].is_running()) return success();
    return Error{ExitCode::internal_error, attempt(i),
                 "it ended with " + std::to_string(children_[i].exit_code())};
  }

  Result<void> sleep(double seconds) {
    const Instant until = monotonic_now() + nanos(seconds);
    while (monotonic_now() < until) {
      for (std::size_t i = 0; i < children_.size(); ++i) {
        ONEHOP_TRYV(check(i));
      }
      std::this_thread::sleep_for(std::min(poll, std::max(until - monotonic_now(), Nanos{0})));
    }
    return success();
  }

  Result<void> measure() {
    const Instant begin = monotonic_now();
    const bool is_timed = spec_.bytes == 0;
    // An end that waits for a peer cannot know the amount either.
    const double limit_s = spec_.is_waiting ? 1
                           : is_timed       ? spec_.seconds
                                            : static_cast<double>(spec_.bytes) /
                                                static_cast<double>(slowest_bytes_per_second) +
                                            spare_seconds;
    Instant interval_at = begin;
    std::uint64_t interval_bytes = received();
    while (!is_over() && (spec_.is_waiting || monotonic_now() < begin + nanos(limit_s))) {
      const Nanos pause =
          spec_.is_waiting ? poll
                           : std::clamp(begin + nanos(limit_s) - monotonic_now(), Nanos{0}, poll);
      ONEHOP_TRYV(sleep(std::chrono::duration<double>(pause).count()));
      const double span_s = std::chrono::duration<double>(monotonic_now() - interval_at).count();
      if (spec_.interval_seconds == 0 || span_s < spec_.interval_seconds) continue;
      for (std::size_t i = 0; i < children_.size(); ++i)
        if (!spec_.ends[i].is_sending) {
          ONEHOP_TRYV(ask(i));
        }
      const std::uint64_t bytes = received();
      interval_at = monotonic_now();
      spec_.mode.on_interval({.at_s = std::chrono::duration<double>(interval_at - begin).count(),
                              .span_s = span_s,
                              .bytes = bytes - interval_bytes});
      interval_bytes = bytes;
    }
    if (is_timed || is_over()) return success();
    return Error{ExitCode::timed_out, "move " + std::to_string(spec_.bytes) + " bytes",
                 "it takes too long"};
  }

  [[nodiscard]] std::uint64_t received() const {
    std::uint64_t sum = 0;
    for (const EndSpec& end : spec_.ends)
      if (!end.is_sending) sum += end.board->moved.bytes;
    return sum;
  }

  [[nodiscard]] bool is_over() const {
    if (spec_.bytes == 0) return false;
    if (!spec_.is_flood) {
      for (std::size_t i = 0; i < spec_.ends.size(); ++i)
        if (state(i) != EndState::done) return false;
      return true;
    }
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < spec_.ends.size(); ++i) {
      const Board& board = *spec_.ends[i].board;
      if (spec_.ends[i].is_sending) continue;
      sum += board.frames_received.load(std::memory_order_relaxed) *
                 (board.frame_bytes - wire::overhead_bytes) -
             costs_.first.ends[i].moved.bytes;
    }
    return sum >= spec_.bytes;
  }

  /// ask makes an end write what it has moved. One that is done has written it already, and waits.
  Result<void> ask(std::size_t i) {
    Board& board = *spec_.ends[i].board;
    if (state(i) == EndState::done) return success();
    const std::uint32_t number = board.asked.load(std::memory_order_relaxed) + 1;
    board.asked.store(number, std::memory_order_release);
    if (!spec_.is_flood) children_[i].end(SIGUSR1);
    for (Nanos waited{0}; waited < answer_patience; waited += answer_poll) {
      ONEHOP_TRYV(check(i));
      if (board.answered.load(std::memory_order_acquire) == number || state(i) == EndState::done)
        return success();
      std::this_thread::sleep_for(answer_poll);
    }
    return Error{ExitCode::timed_out, attempt(i), "it does not answer"};
  }

  Result<void> read_ends(Reading& reading) {
    reading.ends.clear();
    for (std::size_t i = 0; i < children_.size(); ++i) {
      ONEHOP_TRYV(ask(i));
      reading.ends.push_back(
          {spec_.ends[i].board->moved, read_threads(children_[i].pid()), children_[i].counts()});
    }
    return success();
  }

  /// stop ends floods in order and sessions that were cut short at once; those that are done end by
  /// themselves.
  Result<void> stop() {
    for (const EndSpec& end : spec_.ends) {
      end.board->is_stopping.store(true, std::memory_order_relaxed);
      end.board->is_released.store(true, std::memory_order_release);
    }
    const bool is_cut = !spec_.is_flood && spec_.bytes == 0;
    for (std::size_t i = 0; i < children_.size(); ++i) {
      if (is_cut) children_[i].end(SIGTERM);
      if (!children_[i].wait(end_patience))
        return Error{ExitCode::timed_out, attempt(i), "it does not end"};
      if (!is_cut && children_[i].exit_code() != 0) {
        ONEHOP_TRYV(check(i));
      }
    }
    return success();
  }

  static Nanos nanos(double seconds) { return Nanos{static_cast<Nanos::rep>(seconds * 1e9)}; }

  const PairSpec& spec_;
  PairCosts costs_;
  std::vector<Child> children_;
};

}  // namespace

Result<RunResult> run_pair(const PairSpec& spec) { return Runner{spec}.run(); }

}  // namespace onehop::bench
