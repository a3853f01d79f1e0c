// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/ns3/metric.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include "engine/wire/frame.hpp"

namespace onehop::sim {

namespace {

using Flows = std::vector<std::pair<const FlowSpec*, const FlowResult*>>;

/// What the papers call throughput: transport payload. Of ours, header and tag of each frame are payload too.
double throughput(const RunSpec& spec, const FlowSpec& flow, const FlowResult& result) {
  if (flow.kind != "onehop") return result.goodput_mbps;
  return result.goodput_mbps * spec.payload_bytes / static_cast<double>(spec.payload_bytes - wire::overhead_bytes);
}

double sum(const Flows& flows, const std::function<double(const FlowSpec&, const FlowResult&)>& of) {
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
std::optional<double> spread_of(const Flows& flows, Spread FlowResult::*which, const std::string& field) {
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
    Word{"throughput", "Mbit/s", 1},   Word{"goodput", "Mbit/s", 1},      Word{"delay_mean", "us", 0},
    Word{"delay_p50", "us", 0},        Word{"delay_p95", "us", 0},        Word{"delay_p99", "us", 0},
    Word{"wait_mean", "us", 0},        Word{"wait_p95", "us", 0},         Word{"rtt_mean", "us", 0},
    Word{"rtt_p50", "us", 0},          Word{"rtt_p95", "us", 0},          Word{"jain", "", 4},
    Word{"jain_airtime", "", 4},       Word{"airtime", "share", 3},       Word{"complete", "s", 3},
    Word{"lost", "share", 4},          Word{"retransmitted", "share", 4}, Word{"aggregate", "MPDUs", 1},
    Word{"busy", "share", 3},          Word{"wrong", "bytes", 0},         Word{"reports", "per s", 0},
};

std::pair<std::string, std::string> split(const std::string& metric) {
  const auto colon = metric.find(':');
  return colon == std::string::npos ? std::pair{metric, std::string{}} : std::pair{metric.substr(0, colon), metric.substr(colon + 1)};
}

const Word* word_of(const std::string& metric) {
  const std::string name = split(metric).first;
  const auto found = std::find_if(words.begin(), words.end(), [&](const Word& word) { return name == word.name; });
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

}  // namespace

bool is_metric(const std::string& metric) { return word_of(metric) != nullptr; }
std::string metric_unit(const std::string& metric) { return word_of(metric)->unit; }
int metric_digits(const std::string& metric) { return word_of(metric)->digits; }
std::string metric_words() {
  std::string out;
  for (const Word& word : words) out += (out.empty() ? "" : ", ") + std::string{word.name};
  return out;
}

std::optional<double> metric_of(const std::string& metric, const RunSpec& spec, const RunResult& result) {
  const auto [word, name] = split(metric);
  Flows flows;
  const bool is_ping = word.starts_with("rtt_");
  for (std::size_t i = 0; i < result.flows.size() && i < spec.flows.size(); ++i) {
    const FlowSpec& flow = spec.flows[i];
    if ((flow.kind == "ping") == is_ping && (name.empty() || flow.name == name)) flows.emplace_back(&flow, &result.flows[i]);
  }
  if (word == "aggregate") return result.aggregate_frames;
  if (word == "busy") return result.busy_share;
  if (flows.empty()) return std::nullopt;
  const double count = static_cast<double>(flows.size());
  std::vector<double> each;
  if (word == "throughput") return sum(flows, [&](const FlowSpec& f, const FlowResult& r) { return throughput(spec, f, r); });
  if (word == "goodput") return sum(flows, [](const FlowSpec&, const FlowResult& r) { return r.goodput_mbps; });
  if (word == "airtime") return sum(flows, [](const FlowSpec&, const FlowResult& r) { return r.airtime_share; });
  if (word == "wrong") return sum(flows, [](const FlowSpec&, const FlowResult& r) { return static_cast<double>(r.bytes_wrong); });
  if (word == "lost") return sum(flows, [](const FlowSpec&, const FlowResult& r) { return r.lost_share; }) / count;
  if (word == "retransmitted") return sum(flows, [](const FlowSpec&, const FlowResult& r) { return r.retransmitted_share; }) / count;
  if (word == "reports")
    return sum(flows, [](const FlowSpec&, const FlowResult& r) { return static_cast<double>(r.feedback_frames); }) / (spec.warm_up_s + spec.measure_s);
  if (word == "complete") return complete(flows);
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
  if (is_ping) return spread_of(flows, &FlowResult::rtt, field);
  if (name.empty()) return result.delay.count == 0 ? std::nullopt : std::optional{field_of(result.delay, field)};
  return spread_of(flows, &FlowResult::delay, field);
}

Estimate estimate(const std::vector<double>& values) {
  // Student's t, two-sided 95 %, by degrees of freedom from 1 (NIST/SEMATECH e-Handbook, table 1.3.6.7.2).
  constexpr std::array t{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  constexpr double t_beyond = 2.262;  // more seeds: a little too wide
  Estimate out{.count = values.size()};
  if (values.empty()) return out;
  const auto n = static_cast<double>(values.size());
  out.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() == 1) return out;
  double squares = 0;
  for (const double v : values) squares += (v - out.mean) * (v - out.mean);
  const std::size_t freedom = values.size() - 1;
  out.half_width = (freedom <= t.size() ? t[freedom - 1] : t_beyond) * std::sqrt(squares / (n - 1) / n);
  return out;
}

}  // namespace onehop::sim
