// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/ns3/scenario_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>

#include "tools/labs/ns3/seam.hpp"

namespace onehop::sim {

namespace {

using Setter = std::function<bool(const toml::node& node)>;
using Setters = std::map<std::string_view, Setter>;

template <class T>
Setter number(T& out, double min, double max) {
  return [&out, min, max](const toml::node& node) {
    const auto value = node.value<double>();
    if (!node.is_number() || !value || !(*value >= min && *value <= max)) return false;
    out = static_cast<T>(*value);
    return static_cast<double>(out) == *value || !std::is_integral_v<T>;
  };
}
Setter text(std::string& out, std::vector<std::string_view> known = {}) {
  return [&out, known = std::move(known)](const toml::node& node) {
    const auto value = node.value_exact<std::string>();
    if (!value || (!known.empty() && std::find(known.begin(), known.end(), *value) == known.end()))
      return false;
    out = *value;
    return true;
  };
}
Setter flag(bool& out) {
  return [&out](const toml::node& node) {
    const auto value = node.value_exact<bool>();
    if (value) out = *value;
    return value.has_value();
  };
}
Setter numbers(std::vector<std::uint32_t>& out, std::int64_t max) {
  return [&out, max](const toml::node& node) {
    const toml::array* const array = node.as_array();
    if (array == nullptr) return false;
    out.clear();
    for (const toml::node& item : *array) {
      const auto value = item.value_exact<std::int64_t>();
      if (!value || *value < 0 || *value > max) return false;
      out.push_back(static_cast<std::uint32_t>(*value));
    }
    return true;
  };
}

Result<void> read(const toml::table& table, const std::string& where, const Setters& setters) {
  for (const auto& [key, node] : table) {
    const auto found = setters.find(key.str());
    if (found == setters.end()) return refuse(where, std::string{key.str()}, "no such key here");
    if (!found->second(node))
      return refuse(where, std::string{key.str()},
                    "a wrong type, an unknown word, or out of range");
  }
  return success();
}

}  // namespace

Error refuse(const std::string& where, const std::string& key, const std::string& cause) {
  return {ExitCode::usage, fmt::format("read {} of {}", key, where), cause,
          "configs/ns3 has examples"};
}

Result<void> read_link(const toml::table& table, const std::string& where, LinkSpec& link) {
  return read(table, where,
              {{"topology", text(link.topology, {"pairs", "ap"})},
               {"standard", text(link.standard, {"ax", "ac"})},
               {"pairs", number(link.pairs, 1, 64)},
               {"width_mhz", number(link.width_mhz, 20, 160)},
               {"mcs", number(link.mcs, 0, 11)},
               {"streams", number(link.streams, 1, 4)},
               {"guard_ns", number(link.guard_ns, 400, 3200)},
               {"ampdu_bytes", number(link.ampdu_bytes, 0, 6'500'631)},
               {"block_ack", number(link.block_ack, 1, 256)},
               {"station_mcs", numbers(link.station_mcs, 11)},
               {"mcs_trace", numbers(link.mcs_trace, 11)},
               {"mcs_period_s", number(link.mcs_period_s, 0.01, 1e4)},
               {"rate_control", text(link.rate_control, {"constant", "ideal"})},
               {"rssi_dbm", number(link.rssi_dbm, -95, -20)},
               {"walk_mps", number(link.walk_mps, 0.01, 30)},
               {"walk_from_m", number(link.walk_from_m, 1, 1000)},
               {"fading_paths", number(link.fading_paths, 1, 64)},
               {"phy_loss", number(link.phy_loss, 0, 0.2)},  // ns-3 3.37 aborts at 30 %
               {"ip_loss", number(link.ip_loss, 0, 0.9)},
               {"mac_tries", number(link.mac_tries, 1, 1000)},
               {"jitter_ms", number(link.jitter_ms, 0, 91)},  // the model ends there
               {"jitter_draw_ms", number(link.jitter_draw_ms, 0.01, 1e4)},
               {"drought_ms", number(link.drought_ms, 0, 1e4)},
               {"drought_gap_ms", number(link.drought_gap_ms, 1, 1e6)},
               {"mac_queue_frames", number(link.mac_queue_frames, 1, 1e6)},
               {"station_queue_frames", number(link.station_queue_frames, 0, 1e6)},
               {"qdisc", text(link.qdisc, {"fq_codel", "fifo", "pfifo_fast", "none"})},
               {"qdisc_frames", number(link.qdisc_frames, 1, 1e6)},
               {"counts_stations", flag(link.counts_stations)},
               {"hides_senders", flag(link.hides_senders)},
               {"rts_bytes", number(link.rts_bytes, 0, 4'692'480)},  // ns-3's range
               {"scheduler", text(link.scheduler, {"fcfs", "round-robin"})}});
}

Result<void> read_run(const toml::table& table, const std::string& where, RunSpec& run) {
  return read(table, where,
              {{"warm_up_s", number(run.warm_up_s, 0, 1e4)},
               {"measure_s", number(run.measure_s, 0.01, 1e4)},
               {"stops_when_done", flag(run.stops_when_done)},
               {"sample_ms", number(run.sample_ms, 0, 1e6)},
               {"payload_bytes", number(run.payload_bytes, 600, 1472)},
               {"tcp_buffer_bytes", number(run.tcp_buffer_bytes, 4096, 1e9)},
               {"tcp_min_rto_ms", number(run.tcp_min_rto_ms, 1, 1e5)},
               {"tcp_delayed_ack_ms", number(run.tcp_delayed_ack_ms, 1, 1e5)},
               {"has_tcp_timestamps", flag(run.has_tcp_timestamps)}});
}

Result<void> read_flow(const toml::table& table, const std::string& where, FlowTable& out) {
  FlowSpec& flow = out.flow;
  return read(table, where,
              {{"name", text(flow.name)},
               {"kind", text(flow.kind, {"onehop", "udp", "tcp", "ping", "control"})},
               {"law", text(flow.law)},
               {"target", text(flow.target)},
               {"has_qcut", flag(flow.has_qcut)},
               {"variant", text(flow.variant, {"cubic", "newreno", "bbr", "vegas", "c4"})},
               {"pair", number(flow.pair, 0, 63)},
               {"is_reverse", flag(flow.is_reverse)},
               {"is_primed", flag(flow.is_primed)},
               {"rate_mbps", number(flow.rate_mbps, 0, 1e5)},
               {"bytes", number(flow.bytes, 0, 1e12)},
               {"start_s", number(flow.start_s, 0, 1e4)},
               {"stop_s", number(flow.stop_s, 0, 1e4)},
               {"interval_ms", number(flow.interval_ms, 0.1, 1e5)},
               {"is_background", flag(flow.is_background)},
               {"tick_ms", number(flow.tick_ms, 0, 100)},
               {"feedback_ms", number(flow.feedback_ms, 0, 1000)},
               {"has_digests", flag(flow.has_digests)},
               {"facts", text(flow.facts, {"all", "queue", "medium", "none"})},
               {"facts_age_ms", number(flow.facts_age_ms, 0, 1000)},
               {"facts_loss", number(flow.facts_loss, 0, 1)},
               {"port", text(flow.port, {"sees", "blind"})},
               {"fragments", text(flow.fragments, {"none", "switched", "kept"})},
               {"each_pair", flag(out.is_each_pair)},
               {"stagger_s", number(out.stagger_s, 0, 1e3)},
               {"rate_total_mbps", number(out.rate_total_mbps, 0, 1e5)}});
}

Result<void> check_point(const RunSpec& run, const std::string& where) {
  constexpr std::array widths{20U, 40U, 80U, 160U};
  constexpr std::uint32_t mcs_max_ac = 9, block_ack_min = 64, block_ack_max_ac = 64,
                          guard_max_ac_ns = 800;
  const LinkSpec& link = run.link;
  if (std::find(widths.begin(), widths.end(), link.width_mhz) == widths.end())
    return refuse(where, "width_mhz", "it must be 20, 40, 80 or 160");
  if (link.block_ack < block_ack_min)
    return refuse(where, "block_ack", "ns-3's windows begin at 64 MPDUs, one whole bitmap");
  if (link.standard == "ac" && (link.mcs > mcs_max_ac || link.block_ack > block_ack_max_ac ||
                                link.guard_ns > guard_max_ac_ns))
    return refuse(where, "standard",
                  "802.11ac ends at MCS 9, a Block Ack of 64 and a guard interval of 800 ns");
  if (link.standard == "ax" && link.guard_ns < 800)
    return refuse(where, "guard_ns", "802.11ax begins at 800 ns");
  if (link.rate_control == "ideal" && (link.topology != "pairs" || !link.mcs_trace.empty()))
    return refuse(where, "rate_control", "an ideal one is of pairs, and follows no trace of MCS");
  if (link.walk_mps > 0 && (link.topology != "pairs" || link.pairs != 1 || link.rssi_dbm < 0))
    return refuse(where, "walk_mps", "one pair walks, and its signal follows from the distance");
  if (link.fading_paths > 0 && link.walk_mps <= 0)
    return refuse(where, "fading_paths", "it fades as fast as somebody walks (walk_mps)");
  if (run.flows.empty()) return refuse(where, "flows", "a point without a flow");
  for (const FlowSpec& flow : run.flows) {
    if (flow.pair >= link.pairs)
      return refuse(where, "pair", fmt::format("there are {} pairs", link.pairs));
    if (flow.stop_s > 0 && flow.stop_s <= flow.start_s)
      return refuse(where, "stop_s", "it is not after start_s");
    std::string why;
    if (flow.kind == "onehop" && !is_law(flow, why)) return refuse(where, "law", why);
  }
  return success();
}

}  // namespace onehop::sim
