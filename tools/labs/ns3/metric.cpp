// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/metric.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "engine/wire/frame.hpp"

namespace onehop::sim {

namespace {

using Flows = std::vector<std::pair<const FlowSpec*, const FlowResult*>>;

/// What the papers call throughput: transport payload. Of ours, header and tag of each frame are
/// payload too.
double throughput(const RunSpec& spec, const FlowSpec& flow, const FlowResult& result) {
  if (flow.kind != "onehop") return result.goodput_mbps;
  return result.goodput_mbps * spec.payload_bytes /
         static_cast<double>(spec.payload_bytes - wire::overhead_bytes);
}

double sum(const Flows& flows,
           const std::function<double(const FlowSpec&, const FlowResult&)>& of) {
  double total = 0;
  for (const auto& [spec, result] : flows) total += of(*spec, *result);
  return total;
}

std::optional<double> jain(const std::vector<double>& values) {
  double total = 0, squares = 0;
  for (const double v : values) total += v, squares += v * v;
  if (squares == 0) return std::nullopt;
  return total * total / (static_cast<double>(values.size()) * squares);
}

double field_of(const Spread& spread, const std::string& field) {
  if (field == "mean") return spread.mean;
  if (field == "p50") return spread.p50;
  if (field == "p95") return spread.p95;
  if (field == "p99") return spread.p99;
  return spread.max;
}

/// Over several flows the field's mean, each packet counting alike.
std::optional<double> spread_of(const Flows& flows, Spread FlowResult::*which,
                                const std::string& field) {
  double weighted = 0, count = 0;
  for (const auto& [spec, result] : flows) {
    const Spread& spread = result->*which;
    weighted += field_of(spread, field) * static_cast<double>(spread.count);
    count += static_cast<double>(spread.count);
  }
  if (count == 0) return std::nullopt;
  return weighted / count;
}

struct Word {
  const char* name;
  const char* unit;
  int digits;
};
constexpr std::array words{
    Word{"throughput", "Mbit/s", 1},
    Word{"goodput", "Mbit/s", 1},
    Word{"delay_mean", "us", 0},
    Word{"delay_p50", "us", 0},
    Word{"delay_p95", "us", 0},
    Word{"delay_p99", "us", 0},
    Word{"wait_mean", "us", 0},
    Word{"wait_p95", "us", 0},
    Word{"rtt_mean", "us", 0},
    Word{"rtt_p50", "us", 0},
    Word{"rtt_p95", "us", 0},
    Word{"jain", "", 4},
    Word{"jain_airtime", "", 4},
    Word{"airtime", "share", 3},
    Word{"complete", "s", 3},
    Word{"lost", "share", 4},
    Word{"retransmitted", "share", 4},
    Word{"aggregate", "MPDUs", 1},
    Word{"busy", "share", 3},
    Word{"wrong", "bytes", 0},
    Word{"reports", "per s", 0},
    Word{"missing", "bytes", 0},
    Word{"throughput_min", "Mbit/s", 1},
    Word{"backlog_mean", "kB", 0},
    Word{"target_mean", "kB", 0},
    Word{"rate_jumps", "%", 2},
    Word{"off_share_mean", "%", 2},
    Word{"off_share_p95", "%", 2},
    Word{"off_share_max", "%", 2},
    Word{"mean_off_share_max", "%", 2},
    Word{"stalls", "per s", 2},
    Word{"stall_max", "ms", 0},
    Word{"recovery_mean", "ms", 0},
};

std::pair<std::string, std::string> split(const std::string& metric) {
  const auto colon = metric.find(':');
  return colon == std::string::npos ? std::pair{metric, std::string{}}
                                    : std::pair{metric.substr(0, colon), metric.substr(colon + 1)};
}

const Word* word_of(const std::string& metric) {
  const std::string name = split(metric).first;
  const auto found =
      std::find_if(words.begin(), words.end(), [&](const Word& word) { return name == word.name; });
  return found == words.end() ? nullptr : &*found;
}

std::optional<double> complete(const Flows& flows) {
  double last = 0;
  for (const auto& [spec, result] : flows) {
    if (spec->bytes == 0) continue;
    if (!result->is_complete) return std::nullopt;
    last = std::max(last, result->complete_s);
  }
  return last > 0 ? std::optional{last} : std::nullopt;
}

/// Mean of what was sampled in the window, of one flow after the other.
std::optional<double> sampled(const RunSpec& spec, const Flows& flows, double Sample::*what) {
  double total = 0, count = 0;
  for (const auto& [flow, result] : flows)
    for (const Sample& sample : result->series)
      if (sample.at_s > spec.warm_up_s) total += sample.*what, ++count;
  return count > 0 ? std::optional{total / count} : std::nullopt;
}

/// rate_jumps: of the steps from one sample to the next in the window, those in which the link's
/// rate more than doubles or halves.
std::optional<double> rate_jumps(const RunSpec& spec, const Flows& flows) {
  double jumps = 0, steps = 0;
  for (const auto& [flow, result] : flows)
    for (std::size_t i = 1; i < result->series.size(); ++i) {
      const double before = result->series[i - 1].phy_mbps, after = result->series[i].phy_mbps;
      if (result->series[i - 1].at_s < spec.warm_up_s || before <= 0 || after <= 0) continue;
      ++steps;
      if (after > 2 * before || before > 2 * after) ++jumps;
    }
  return steps > 0 ? std::optional{jumps / steps * 100} : std::nullopt;
}

/// Stalls: the spells of at least stall_s in a flow's series in which nothing arrived.
struct Stalls {
  double count = 0, span_s = 0, longest_s = 0;
  double recovery_s = 0;  // of all together
};
constexpr double stall_s = 0.05;

/// What a flow carried in the bins between its stalls, and how long after each it carried 0.9 of
/// their median again, over stall_s on end. What is not reached counts up to the next stall.
void add_stalls(const std::vector<double>& rates, double bin_s, Stalls& out) {
  const auto long_bins = static_cast<std::size_t>(std::ceil(stall_s / bin_s));
  std::vector<std::pair<std::size_t, std::size_t>> stalls;  // first bin, and the one behind
  std::vector<double> calm;
  for (std::size_t i = 0, end = 0; i < rates.size(); i = std::max(end, i + 1)) {
    for (end = i; end < rates.size() && rates[end] <= 0;) ++end;
    if (end - i >= long_bins)
      stalls.emplace_back(i, end);
    else
      calm.insert(calm.end(), rates.begin() + static_cast<std::ptrdiff_t>(i),
                  rates.begin() + static_cast<std::ptrdiff_t>(std::max(end, i + 1)));
  }
  out.span_s += static_cast<double>(rates.size()) * bin_s;
  out.count += static_cast<double>(stalls.size());
  if (calm.empty()) {
    out.longest_s = std::max(out.longest_s, static_cast<double>(rates.size()) * bin_s);
    return;
  }
  const auto middle = calm.begin() + static_cast<std::ptrdiff_t>(calm.size() / 2);
  std::nth_element(calm.begin(), middle, calm.end());
  const double enough = 0.9 * *middle * static_cast<double>(long_bins);
  for (std::size_t k = 0; k < stalls.size(); ++k) {
    const auto [from, end] = stalls[k];
    out.longest_s = std::max(out.longest_s, static_cast<double>(end - from) * bin_s);
    const std::size_t next = k + 1 < stalls.size() ? stalls[k + 1].first : rates.size();
    std::size_t at = end;
    const auto carried = [&] {
      return std::accumulate(rates.begin() + static_cast<std::ptrdiff_t>(at),
                             rates.begin() + static_cast<std::ptrdiff_t>(at + long_bins), 0.0);
    };
    while (at + long_bins <= next && carried() < enough) ++at;
    out.recovery_s += static_cast<double>((at + long_bins <= next ? at : next) - end) * bin_s;
  }
}

std::optional<double> stalls_of(const RunSpec& spec, const Flows& flows, const std::string& what) {
  if (spec.sample_ms <= 0) return std::nullopt;
  Stalls stalls;
  for (const auto& [flow, result] : flows) {
    std::vector<double> rates;
    for (const Sample& sample : result->series)
      if (sample.at_s > spec.warm_up_s) rates.push_back(sample.goodput_mbps);
    add_stalls(rates, spec.sample_ms * 1e-3, stalls);
  }
  if (what == "stalls")
    return stalls.span_s > 0 ? std::optional{stalls.count / stalls.span_s} : std::nullopt;
  if (what == "stall_max") return stalls.longest_s * 1e3;
  return stalls.count > 0 ? std::optional{stalls.recovery_s / stalls.count * 1e3} : std::nullopt;
}

/// SteadyBin: the rates of those who sent throughout one bin of the series.
using SteadyBin = std::vector<double>;

/// Bins from the second one after each start or stop of a flow on, until the next.
std::vector<SteadyBin> steady_bins(const RunSpec& spec, const Flows& flows) {
  constexpr double slack_s = 1e-6;
  const double bin_s = spec.sample_ms * 1e-3;
  std::vector<double> events;
  for (const auto& [flow, result] : flows) {
    events.push_back(flow->start_s);
    if (flow->stop_s > 0) events.push_back(flow->stop_s);
  }
  std::vector<SteadyBin> out;
  for (std::size_t i = 0; i < flows.front().second->series.size(); ++i) {
    const double end_s = flows.front().second->series[i].at_s, from_s = end_s - bin_s;
    const bool is_near = std::any_of(events.begin(), events.end(), [&](double at_s) {
      return at_s > from_s - bin_s + slack_s && at_s < end_s - slack_s;
    });
    if (is_near || end_s <= spec.warm_up_s) continue;
    SteadyBin bin;
    for (const auto& [flow, result] : flows)
      if (flow->start_s < end_s - slack_s && (flow->stop_s == 0 || flow->stop_s > from_s + slack_s))
        bin.push_back(result->series[i].goodput_mbps);
    if (!bin.empty()) out.push_back(bin);
  }
  return out;
}

/// How far a flow's rate in a bin is from its share, in percent of the share: the median over the
/// bins with as many senders of what all got together, divided by their number.
std::optional<double> off_share(const RunSpec& spec, const Flows& flows, const std::string& field) {
  std::map<std::size_t, std::vector<double>> sums;
  const std::vector<SteadyBin> bins = steady_bins(spec, flows);
  for (const SteadyBin& bin : bins)
    sums[bin.size()].push_back(std::accumulate(bin.begin(), bin.end(), 0.0));
  std::vector<double> off;
  for (const SteadyBin& bin : bins) {
    std::vector<double>& all = sums[bin.size()];
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2),
                     all.end());
    const double share = all[all.size() / 2] / static_cast<double>(bin.size());
    if (share <= 0) return std::nullopt;
    for (const double rate : bin) off.push_back(std::abs(rate - share) / share * 100);
  }
  if (off.empty()) return std::nullopt;
  std::sort(off.begin(), off.end());
  if (field == "mean")
    return std::accumulate(off.begin(), off.end(), 0.0) / static_cast<double>(off.size());
  return field == "max"
             ? off.back()
             : off[static_cast<std::size_t>(0.95 * static_cast<double>(off.size() - 1) + 0.5)];
}

}  // namespace

bool is_metric(const std::string& metric) { return word_of(metric) != nullptr; }
std::string metric_unit(const std::string& metric) { return word_of(metric)->unit; }
int metric_digits(const std::string& metric) { return word_of(metric)->digits; }
std::string metric_words() {
  std::string out;
  for (const Word& word : words) out += (out.empty() ? "" : ", ") + std::string{word.name};
  return out;
}

bool is_of_all_seeds(const std::string& metric) { return metric.starts_with("mean_"); }

RunResult mean_series(const std::vector<const RunResult*>& results) {
  RunResult out = *results.front();
  const double share = 1.0 / static_cast<double>(results.size());
  for (std::size_t flow = 0; flow < out.flows.size(); ++flow)
    for (std::size_t i = 0; i < out.flows[flow].series.size(); ++i) {
      double sum = 0;
      for (const RunResult* result : results) sum += result->flows[flow].series[i].goodput_mbps;
      out.flows[flow].series[i].goodput_mbps = sum * share;
    }
  return out;
}

std::optional<double> metric_of(const std::string& metric, const RunSpec& spec,
                                const RunResult& result) {
  const auto [word, name] = split(metric);
  Flows flows;
  const bool is_of_probes = word.starts_with("rtt_");
  for (std::size_t i = 0; i < result.flows.size() && i < spec.flows.size(); ++i) {
    const FlowSpec& flow = spec.flows[i];
    if (flow.is_probe() == is_of_probes && (name.empty() || flow.name == name))
      flows.emplace_back(&flow, &result.flows[i]);
  }
  if (word == "aggregate") return result.aggregate_frames;
  if (word == "busy") return result.busy_share;
  if (flows.empty()) return std::nullopt;
  const double count = static_cast<double>(flows.size());
  std::vector<double> each;
  if (word == "throughput")
    return sum(flows,
               [&](const FlowSpec& f, const FlowResult& r) { return throughput(spec, f, r); });
  if (word == "goodput")
    return sum(flows, [](const FlowSpec&, const FlowResult& r) { return r.goodput_mbps; });
  if (word == "airtime")
    return sum(flows, [](const FlowSpec&, const FlowResult& r) { return r.airtime_share; });
  if (word == "wrong")
    return sum(flows, [](const FlowSpec&, const FlowResult& r) {
      return static_cast<double>(r.bytes_wrong);
    });
  if (word == "lost")
    return sum(flows, [](const FlowSpec&, const FlowResult& r) { return r.lost_share; }) / count;
  if (word == "retransmitted")
    return sum(flows, [](const FlowSpec&, const FlowResult& r) { return r.retransmitted_share; }) /
           count;
  if (word == "reports")
    return sum(flows, [](const FlowSpec&,
                         const FlowResult& r) { return static_cast<double>(r.feedback_frames); }) /
           (spec.warm_up_s + spec.measure_s);
  if (word == "complete") return complete(flows);
  if (word == "missing")
    return sum(flows, [](const FlowSpec& f, const FlowResult& r) {
      return static_cast<double>(f.bytes) -
             static_cast<double>(std::min(f.bytes, r.bytes_delivered));
    });
  if (word == "throughput_min") {
    for (const auto& [f, r] : flows) each.push_back(throughput(spec, *f, *r));
    return *std::min_element(each.begin(), each.end());
  }
  if (word == "backlog_mean") return sampled(spec, flows, &Sample::backlog_kb);
  if (word == "target_mean") return sampled(spec, flows, &Sample::target_kb);
  if (word == "rate_jumps") return rate_jumps(spec, flows);
  if (word == "stalls" || word == "stall_max" || word == "recovery_mean")
    return stalls_of(spec, flows, word);
  if (word == "mean_off_share_max") return off_share(spec, flows, "max");
  if (word.starts_with("off_share_"))
    return off_share(spec, flows, word.substr(std::string_view{"off_share_"}.size()));
  if (word == "jain") {
    for (const auto& [f, r] : flows) each.push_back(throughput(spec, *f, *r));
    return jain(each);
  }
  if (word == "jain_airtime") {
    for (const auto& [f, r] : flows) each.push_back(r->airtime_share);
    return jain(each);
  }
  const std::string field = word.substr(word.find('_') + 1);
  if (word.starts_with("wait_")) return spread_of(flows, &FlowResult::wait, field);
  if (is_of_probes) return spread_of(flows, &FlowResult::rtt, field);
  if (name.empty())
    return result.delay.count == 0 ? std::nullopt : std::optional{field_of(result.delay, field)};
  return spread_of(flows, &FlowResult::delay, field);
}

}  // namespace onehop::sim
