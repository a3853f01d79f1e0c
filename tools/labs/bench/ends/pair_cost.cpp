// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/ends/pair_cost.hpp"

#include <algorithm>

namespace onehop::bench {

namespace {

double at(const std::map<pid_t, double>& seconds, pid_t tid) {
  const auto found = seconds.find(tid);
  return found == seconds.end() ? 0 : found->second;
}

/// "onehop-engine" of a sending end is "sender/engine"; its main thread runs the control
/// connection.
std::string label_of(const std::string& thread, bool is_sending) {
  constexpr std::string_view prefix = "onehop-";
  const std::string name = thread.starts_with(prefix) ? thread.substr(prefix.size()) : "plane";
  return (is_sending ? "sender/" : "receiver/") + name;
}

}  // namespace

MachineReading PairCosts::read_machine() const {
  return {.softirq_s = softirq ? softirq->read() : std::map<pid_t, double>{},
          .energy = energy.read()};
}

/// moved is what an end did between the readings, or in its whole life.
Moved PairCosts::moved(std::size_t i) const {
  Moved sum = last.ends[i].moved;
  if (is_whole_life) return sum;
  const Moved& before = first.ends[i].moved;
  sum.bytes -= before.bytes;
  sum.frames -= before.frames;
  sum.frames_lost -= before.frames_lost;
  sum.wakeups -= before.wakeups;
  sum.engine_syscalls -= before.engine_syscalls;
  sum.user_us -= before.user_us;
  sum.system_us -= before.system_us;
  sum.voluntary_switches -= before.voluntary_switches;
  sum.at_ns -= before.at_ns;  // now a span
  return sum;
}

RunResult PairCosts::result(const PairSpec& spec) const {
  RunResult result;
  const bool has_sender = std::ranges::any_of(spec.ends, &EndSpec::is_sending);
  // The other end may be on another host
  const bool has_receiver = !std::ranges::all_of(spec.ends, &EndSpec::is_sending);
  double bytes = 0, seconds = 0;
  std::int64_t first_ns = INT64_MAX, last_ns = 0;
  for (std::size_t i = 0; i < spec.ends.size(); ++i) {
    const Moved part = moved(i);
    if (!spec.ends[i].is_sending || !has_receiver) bytes += static_cast<double>(part.bytes);
    if (spec.ends[i].is_sending || !has_sender)
      first_ns = std::min(first_ns, spec.ends[i].board->first_data_ns);
    last_ns = std::max(last_ns, last.ends[i].moved.at_ns);
    if (!is_whole_life) seconds = std::max(seconds, static_cast<double>(part.at_ns) / 1e9);
  }
  if (is_whole_life) seconds = static_cast<double>(last_ns - first_ns) / 1e9;
  result.metrics["bytes_total"] = bytes;
  result.metrics["seconds"] = seconds;
  result.metrics["goodput_bps"] = seconds > 0 ? 8 * bytes / seconds : 0;
  if (bytes > 0) {
    add_ends(spec, result, bytes);
    if (spec.mode.is_counted) add_counts(result, bytes);
    add_machine(result, bytes);
  }
  add_threads(spec, result);
  const Board& board = *spec.ends.front().board;
  result.metrics["frame_bytes"] = board.frame_bytes;
  for (const auto& [key, text] :
       {std::pair{"io_used", board.io_used.data()}, std::pair{"io_mode", board.io_mode.data()},
        std::pair{"aead", board.aead.data()}, std::pair{"file_io", board.file_io.data()}})
    if (*text != '\0') result.used[key] = text;
  if (const Board& far = *spec.ends.back().board;
      far.io_mode[0] != '\0' && has_sender && has_receiver)
    result.used["io_mode_sender"] = far.io_mode.data();
  return result;
}

void PairCosts::add_ends(const PairSpec& spec, RunResult& result, double bytes) const {
  Metrics& m = result.metrics;
  const double seconds = m["seconds"];
  for (const bool is_sending : {true, false}) {
    const std::string side = is_sending ? "sender" : "receiver";
    if (std::ranges::none_of(spec.ends,
                             [&](const EndSpec& end) { return end.is_sending == is_sending; }))
      continue;
    Moved sum;
    for (std::size_t i = 0; i < spec.ends.size(); ++i) {
      if (spec.ends[i].is_sending != is_sending) continue;
      const Moved part = moved(i);
      sum.frames += part.frames;
      sum.frames_lost += part.frames_lost;
      sum.wakeups += part.wakeups;
      sum.engine_syscalls += part.engine_syscalls;
      sum.user_us += part.user_us;
      sum.system_us += part.system_us;
      sum.voluntary_switches += part.voluntary_switches;
    }
    const auto frames = static_cast<double>(sum.frames);
    const double cpu_us = static_cast<double>(sum.user_us + sum.system_us);
    m[side + "_user_ns_per_byte"] = static_cast<double>(sum.user_us) * 1e3 / bytes;
    m[side + "_system_ns_per_byte"] = static_cast<double>(sum.system_us) * 1e3 / bytes;
    m[side + "_ns_per_byte"] = cpu_us * 1e3 / bytes;
    m["cpu_seconds"] += cpu_us / 1e6;
    m[side + "_switches_per_second"] = static_cast<double>(sum.voluntary_switches) / seconds;
    m["switches_per_second"] += m[side + "_switches_per_second"];
    m[side + "_wakeups"] = static_cast<double>(sum.wakeups);
    if (sum.wakeups > 0) m[side + "_frames_per_wakeup"] = frames / static_cast<double>(sum.wakeups);
    if (sum.frames > 0)
      m[side + "_syscalls_per_frame"] = static_cast<double>(sum.engine_syscalls) / frames;
    if (is_sending)
      m["frames_lost"] = static_cast<double>(sum.frames_lost);
    else
      m["frames_per_second"] = frames / seconds;
  }
  const auto softirq_s = usage.softirq_seconds();
  if (softirq_s) m["softirq_seconds"] = *softirq_s;
  m["cpu_ns_per_byte"] = (m["cpu_seconds"] + softirq_s.value_or(0)) * 1e9 / bytes;
  if (const auto busy_s = usage.system_busy_seconds()) {
    m["system_busy_seconds"] = *busy_s;
    m["busy_ns_per_byte"] = *busy_s * 1e9 / bytes;
  }
}

void PairCosts::add_counts(RunResult& result, double bytes) const {
  double cycles = 0, instructions = 0;
  for (std::size_t i = 0; i < last.ends.size(); ++i) {
    const auto& now = last.ends[i].counts;
    if (!now || (!is_whole_life && !first.ends[i].counts)) {
      result.missing["cycles"] = counts_missing;
      return;
    }
    const PerfCounters::Counts before =
        is_whole_life ? PerfCounters::Counts{} : *first.ends[i].counts;
    cycles += static_cast<double>(now->cycles - before.cycles);
    instructions += static_cast<double>(now->instructions - before.instructions);
  }
  result.metrics["cycles_per_byte"] = cycles / bytes;
  result.metrics["instructions_per_byte"] = instructions / bytes;
}

void PairCosts::add_machine(RunResult& result, double bytes) const {
  if (softirq) {
    double sum_s = 0;
    for (const auto& [tid, seconds] : last.machine.softirq_s)
      sum_s += seconds - at(first.machine.softirq_s, tid);
    result.metrics["softirq_all_ns_per_byte"] = sum_s * 1e9 / bytes;
    result.metrics["softirq_idle_ns_per_byte"] =
        (at(last.machine.softirq_s, 0) - at(first.machine.softirq_s, 0)) * 1e9 / bytes;
  } else {
    result.missing["softirq"] = softirq_missing;
  }
  if (const auto joules = energy.joules(first.machine.energy, last.machine.energy))
    result.metrics["energy_nj_per_byte"] = *joules * 1e9 / bytes;
  else
    result.missing["energy"] = energy.missing();
}

void PairCosts::add_threads(const PairSpec& spec, RunResult& result) const {
  const std::map<pid_t, double>& softirq_before =
      is_whole_life ? at_start.softirq_s : first.machine.softirq_s;
  for (std::size_t i = 0; i < last.ends.size(); ++i) {
    for (const ThreadTime& thread : last.ends[i].threads) {
      ThreadTime before;
      if (!is_whole_life) {
        const auto found = std::ranges::find(first.ends[i].threads, thread.tid, &ThreadTime::tid);
        if (found != first.ends[i].threads.end()) before = *found;
      }
      ThreadCost& cost = result.threads[label_of(thread.name, spec.ends[i].is_sending)];
      cost.user_s += std::max(0.0, thread.user_s - before.user_s);
      cost.system_s += std::max(0.0, thread.system_s - before.system_s);
      if (softirq)
        cost.softirq_s = cost.softirq_s.value_or(0) + at(last.machine.softirq_s, thread.tid) -
                         at(softirq_before, thread.tid);
    }
  }
}

}  // namespace onehop::bench
