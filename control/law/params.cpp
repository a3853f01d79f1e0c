// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/params.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <optional>
#include <set>
#include <utility>

namespace onehop::law {

namespace {
using nlohmann::json;

/// Reader takes values out of one object, remembers which keys it knows and the first fault.
class Reader {
 public:
  Reader(const json& object, std::string_view where) : object_{object}, where_{where} { known_.insert("law"); }

  void gain(const char* key, Gain& out, double least, double most) {
    if (const auto v = number(key, least, most)) out = {std::llround(*v * 1000.0)};
  }
  void gains(const char* key, Gain& low, Gain& high, double least, double most) {
    if (const auto v = pair(key, least, most)) low = {std::llround(v->first * 1000.0)}, high = {std::llround(v->second * 1000.0)};
  }
  void ms(const char* key, Nanos& out, double least, double most) {
    if (const auto v = number(key, least, most)) out = Nanos{std::llround(*v * 1e6)};
  }
  void ms_pair(const char* key, Nanos& low, Nanos& high, double least, double most) {
    if (const auto v = pair(key, least, most)) low = Nanos{std::llround(v->first * 1e6)}, high = Nanos{std::llround(v->second * 1e6)};
  }
  bool rate(const char* key, BytesPerSecond& out) {
    const auto v = number(key, 8e3, 1e12);
    if (v) out = bit_per_s(std::llround(*v));
    return v.has_value();
  }
  void bytes(const char* key, Bytes& out) {
    if (const auto v = number(key, 1'500, 64.0 * 1024 * 1024)) out = {std::llround(*v)};
  }
  template <class Integer>
  void count(const char* key, Integer& out, double least, double most) {
    const auto v = number(key, least, most);
    if (v && *v != std::floor(*v)) refuse(key, "it must be a whole number");
    else if (v) out = static_cast<Integer>(std::llround(*v));
  }
  /// require is a rule between two keys.
  void require(bool holds, const char* key, const char* rule) {
    if (!holds) refuse(key, rule);
  }

  [[nodiscard]] Result<void> finish() {
    for (const auto& [key, value] : object_.items()) {
      if (known_.contains(key)) continue;
      std::string all;
      for (const std::string& name : known_) all += (all.empty() ? "" : ", ") + name;
      refuse(key, "no such key here", "Known keys: " + all + ".");
    }
    if (fault_) return *std::move(fault_);
    return success();
  }

 private:
  std::optional<double> number(const char* key, double least, double most) {
    known_.insert(key);
    const auto found = object_.find(key);
    if (found == object_.end()) return std::nullopt;
    return within(key, *found, least, most);
  }
  std::optional<std::pair<double, double>> pair(const char* key, double least, double most) {
    known_.insert(key);
    const auto found = object_.find(key);
    if (found == object_.end()) return std::nullopt;
    if (!found->is_array() || found->size() != 2) return refuse(key, "it must be [lowest, highest]"), std::nullopt;
    const auto low = within(key, (*found)[0], least, most);
    const auto high = within(key, (*found)[1], least, most);
    if (!low || !high) return std::nullopt;
    if (*low > *high) return refuse(key, "the lowest is above the highest"), std::nullopt;
    return std::pair{*low, *high};
  }
  std::optional<double> within(const char* key, const json& value, double least, double most) {
    if (!value.is_number()) return refuse(key, "it must be a number"), std::nullopt;
    const double v = value.get<double>();
    if (v >= least && v <= most) return v;
    return refuse(key, fmt::format("{} is not within {} .. {}", v, least, most)), std::nullopt;
  }
  void refuse(const std::string& key, std::string cause, std::string hint = "configs/law has examples.") {
    if (fault_) return;
    fault_ = Error{.code = ExitCode::usage, .attempt = fmt::format("read '{}' of {}", key, where_), .cause = std::move(cause),
                   .hint = std::move(hint)};
  }

  const json& object_;
  std::string where_;
  std::set<std::string> known_;
  std::optional<Error> fault_;
};

void read(Reader& r, SafeRangeParams& p) {
  r.ms("d_1_ms", p.d_1, 0.5, 100);
  r.gains("v_1_bounds", p.v_1_lo, p.v_1_up, 0, 10);
  r.require(p.v_1_lo <= Gain{1000} && p.v_1_up >= Gain{1000}, "v_1_bounds", "the bounds must lie around 1");
  r.gains("v_rx_bounds", p.v_rx_lo, p.v_rx_up, 0, 10);
  r.require(p.v_rx_lo <= Gain{1000} && p.v_rx_up >= Gain{1000}, "v_rx_bounds", "the bounds must lie around 1");
  r.ms("d_rx_min_ms", p.d_rx_min, 0.1, 100);
  r.ms("latch_min_ms", p.latch_min, 1, 10'000);
  if (r.rate("rate_start_bps", p.rate_start)) p.is_start_known = true;
  r.rate("rate_min_bps", p.rate_min);
  r.rate("rate_max_bps", p.rate_max);
  r.require(p.rate_min <= p.rate_start && p.rate_start <= p.rate_max, "rate_start_bps", "it must lie between rate_min_bps and rate_max_bps");
  r.bytes("backlog_start_bytes", p.backlog_start);
  r.count("batch_frames_max", p.batch_frames_max, 2, 256);
}

void read(Reader& r, AggregateParams& p) {
  r.bytes("aggregate_start_bytes", p.start);
  r.bytes("aggregate_least_bytes", p.least);
  r.bytes("aggregate_most_bytes", p.most);
  r.require(p.least <= p.start && p.start <= p.most, "aggregate_start_bytes",
            "it must lie between aggregate_least_bytes and aggregate_most_bytes");
}

void read(Reader& r, WdtcpParams& p) {
  r.gain("eta_start", p.eta_start, 0.05, 1);
  r.gain("beta_max", p.beta_max, 0.01, 1);
  r.count("pairs_min", p.pairs_min, 2, 64);
  read(r, p.aggregate);
}

void read(Reader& r, AirtimeShareParams& p) {
  r.gain("eta", p.eta, 0.1, 1);
  r.gain("hysteresis", p.hysteresis, 0, 0.5);
  r.gain("k_start", p.k_start, 0.05, 1);
  r.gains("k_bounds", p.k_lowest, p.k_highest, 0.05, 1);
  r.gain("use_saturated", p.use_saturated, 0.1, 1);
  r.ms_pair("interval_ms", p.interval_min, p.interval_max, 1, 10'000);
  r.count("stations_max", p.stations_max, 2, 1'000);
}

void read(Reader& r, QcutParams& p) {
  r.ms("tau_wired_ms", p.tau_wired, 0.1, 1'000);
  r.ms("tau_wifi_ms", p.tau_wifi, 0.1, 1'000);
  r.ms("tau_max_ms", p.tau_max, 0.1, 1'000);
  r.require(p.tau_wired <= p.tau_max && p.tau_wifi <= p.tau_max, "tau_max_ms", "it is below tau_wired_ms or tau_wifi_ms");
}

void read(Reader& r, AutoParams& p) {
  r.ms("drain_window_ms", p.drain_window, 0.5, 50);
  r.ms("spread_min_ms", p.spread_min, 0.1, 100);
  r.gain("beta_max", p.beta_max, 0.01, 1);
  r.gain("b_over_a", p.b_over_a, 1, 10);
  r.count("wired_bursts", p.wired_bursts, 1, 64);
  r.ms("wired_burst_ms", p.wired_burst, 0.01, 10);
  read(r, p.aggregate);
}
}  // namespace

Result<std::string> read_params(std::string_view text, std::string_view where, LawParams& params) {
  const json object = json::parse(text, nullptr, false);
  const auto refuse = [&](std::string cause) {
    return Error{.code = ExitCode::usage, .attempt = fmt::format("read law parameters from {}", where), .cause = std::move(cause),
                 .hint = "configs/law has examples."};
  };
  if (!object.is_object()) return refuse("it is not a JSON object");
  const auto law = object.find("law");
  if (law == object.end() || !law->is_string()) return refuse("the key \"law\" is missing");
  const auto name = law->get<std::string>();
  Reader reader{object, where};
  LawParams read_in = params;
  if (name == "safe-range") read(reader, read_in.safe_range);
  else if (name == "wdtcp") read(reader, read_in.wdtcp);
  else if (name == "cupid") read(reader, read_in.share);
  else if (name == "qcut") read(reader, read_in.qcut);
  else if (name == "auto") read(reader, read_in.auto_law);
  else return refuse(fmt::format("'{}' has no parameters; laws that have: auto, safe-range, wdtcp, cupid, qcut", name));
  ONEHOP_TRYV(reader.finish());
  params = read_in;
  return name;
}

bool uses_params(std::string_view spec, bool has_qcut, std::string_view name) noexcept {
  if (name == "qcut") return has_qcut;
  if (name == "safe-range") return has_start_rate(spec);
  if (name == "wdtcp") return spec == "wdtcp" || spec == "wdtcp:paper";
  if (name == "cupid") return spec == "cupid" || spec == "auto";
  return name == spec;
}

bool has_start_rate(std::string_view spec) noexcept { return !spec.starts_with("fixed:"); }

}  // namespace onehop::law
