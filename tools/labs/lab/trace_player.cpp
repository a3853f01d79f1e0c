// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/trace_player.hpp"

#include <chrono>

namespace onehop::lab {

TracePlayer::TracePlayer(const HostNames& hosts, const Profile& profile, RateLog* log)
    : hosts_{hosts}, profile_{profile}, log_{log} {
  if (log_ != nullptr && profile_.rate) log_->add(*profile_.rate);
  if (profile_.trace.size() > 1)
    thread_ = std::jthread{[this](const std::stop_token& stopping) { play(stopping); }};
}

std::optional<Error> TracePlayer::stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  return error_;
}

void TracePlayer::play(const std::stop_token& stopping) {
  // Deadlines and not pauses: the time that tc takes must not stretch the trace.
  auto lap_start = std::chrono::steady_clock::now();
  std::size_t next = 1;  // the link was built with the first rate
  for (;;) {
    const Nanos at = next < profile_.trace.size() ? profile_.trace[next].at : profile_.trace_period;
    std::unique_lock lock{mutex_};
    wake_.wait_until(lock, stopping, lap_start + at, [] { return false; });
    if (stopping.stop_requested()) return;
    if (next == profile_.trace.size()) {
      lap_start += profile_.trace_period;
      next = 0;
    }
    const BytesPerSecond rate = profile_.trace[next++].rate;
    const Result<void> changed = set_link_rate(hosts_, profile_, rate);
    if (changed.has_error()) {
      error_ = changed.error();
      return;
    }
    if (log_ != nullptr) log_->add(rate);
  }
}

}  // namespace onehop::lab
