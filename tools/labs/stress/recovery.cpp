// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/stress/recovery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/base/result.hpp"
#include "engine/base/time.hpp"

namespace onehop::stress {

namespace {
using Json = nlohmann::ordered_json;
constexpr Nanos watched = 1s, window = 20ms, look = 1ms;
constexpr std::int64_t recovered_percent = 90;
// A look that comes this late leaves less than half of a window to be seen.
constexpr Nanos late = 10ms;

struct Look {
  Instant at;
  std::uint64_t bytes = 0;
};

double in_ms(Nanos span) { return static_cast<double>(span.count()) / 1e6; }
}  // namespace

Recovery Recovery::with_earlier(const Recovery& earlier) const {
  Recovery both = *this;
  both.recovery_ms = std::max(recovery_ms, earlier.recovery_ms);
  both.is_trusted = is_trusted && earlier.is_trusted;
  both.is_recovered = is_recovered && earlier.is_recovered;
  return both;
}

Recovery watch_recovery(const Flow& flow, BytesPerSecond rate, Instant since) {
  const Instant start = monotonic_now();
  std::vector<Look> looks{{start, flow.bytes()}};
  Recovery out{.is_recovered = false};
  std::size_t first = 0;
  while (looks.back().at - start < watched && flow.is_running()) {
    std::this_thread::sleep_for(look);
    const Instant now = monotonic_now();
    out.is_trusted = out.is_trusted && now - looks.back().at < late;
    looks.push_back({now, flow.bytes()});
    while (now - looks[first + 1].at >= window) ++first;
    const Nanos span = now - looks[first].at;
    const auto carried = static_cast<std::int64_t>(looks.back().bytes - looks[first].bytes);
    out.recovery_ms = in_ms(looks[first].at - since);
    if (span < window || carried * 100 < (rate * span).count * recovered_percent) continue;
    out.is_recovered = true;
    return out;
  }
  // A file that came to its end before says nothing
  out.is_trusted = out.is_trusted && flow.is_running();
  return out;
}

BytesPerSecond measure_rate(const Flow& flow, Nanos span) {
  const Look before{monotonic_now(), flow.bytes()};
  std::this_thread::sleep_for(span);
  const Look after{monotonic_now(), flow.bytes()};
  return Bytes{static_cast<std::int64_t>(after.bytes - before.bytes)} / (after.at - before.at);
}

void RecoveryReport::add(const Recovery& r) {
  all_.push_back(r);
  if (is_json_)
    fmt::print("{}\n", Json{{"schema_version", 1},
                            {"type", "stress_lab_fault"},
                            {"seed", seed_},
                            {"schedule", r.schedule},
                            {"io", r.io},
                            {"fault", r.fault},
                            {"span_ms", r.span_ms},
                            {"recovery_ms", r.recovery_ms},
                            {"is_in_time", r.is_in_time()}}
                           .dump());
  else if (!is_quiet_)
    fmt::print("schedule {:>3}  {:<5}  {:<14}  {:>4.0f} ms   full again after {:>5.1f} ms{}\n",
               r.schedule, r.io, r.fault, r.span_ms, r.recovery_ms,
               r.is_in_time() ? "" : "   TOO LATE");
  std::fflush(stdout);
}

int RecoveryReport::finish(std::uint64_t schedules) const {
  std::size_t late_total = 0;
  double worst = 0;
  for (const Recovery& r : all_) {
    worst = std::max(worst, r.recovery_ms);
    if (r.is_in_time()) continue;
    ++late_total;
    fmt::print(stderr,
               "onehop stress: schedule {} of seed {}: {} of {:.0f} ms over {}: full again after "
               "{:.1f} ms, more than {} ms\n  this one alone: {} --only {}\n",
               r.schedule, seed_, r.fault, r.span_ms, r.io, r.recovery_ms, Recovery::allowed / 1ms,
               again_words_, r.schedule);
  }
  const bool is_held = late_total == 0 && !all_.empty();
  if (is_json_)
    fmt::print("{}\n", Json{{"schema_version", 1},
                            {"type", "stress_lab"},
                            {"seed", seed_},
                            {"schedules_total", schedules},
                            {"faults_total", all_.size()},
                            {"late_total", late_total},
                            {"recovery_ms_max", worst},
                            {"played_again_total", again_},
                            {"is_held", is_held}}
                           .dump());
  else
    fmt::print(
        "{} faults in {} schedules of seed {}: {} too late, the slowest {:.1f} ms\n  {} played "
        "again because this machine was too busy to tell\n",
        all_.size(), schedules, seed_, late_total, worst, again_);
  if (all_.empty())
    fmt::print(stderr,
               "onehop stress: nothing could be judged: this machine was too busy, or the file too "
               "short\n");
  return is_held ? 0 : static_cast<int>(ExitCode::internal_error);
}

}  // namespace onehop::stress
