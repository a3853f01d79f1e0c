// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What can be read of the link: each source asked some times, with the last values and the median
// cost of a reading.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "control/link/link_watch.hpp"
#include "control/link/nl80211_source.hpp"
#include "engine/base/time.hpp"
#include "engine/port/udp_socket.hpp"
#include "tools/onehop/doctor/doctor.hpp"
#include "tools/onehop/text/quantity.hpp"

namespace onehop::tool {

namespace {

constexpr std::size_t readings = 9;
constexpr Nanos stride{
    2s};  // apart, in the time that sources are told: every sensor is due at every reading

/// median_cost runs f(time) some times and measures each.
template <class F>
Nanos median_cost(F&& f) {
  std::array<Nanos, readings> costs;
  const Instant start = monotonic_now() - stride * static_cast<int>(readings);
  for (std::size_t i = 0; i < readings; ++i) {
    const Instant began = monotonic_now();
    f(start + stride * static_cast<int>(i));
    costs[i] = monotonic_now() - began;
  }
  std::ranges::nth_element(costs, costs.begin() + readings / 2);
  return costs[readings / 2];
}

double us_of(Nanos span) { return static_cast<double>(span.count()) / 1e3; }

Finding found(std::string key, const std::string& text, Json value, Nanos cost) {
  value["cost_ns"] = cost.count();
  return {"telemetry", std::move(key), Verdict::good,
          fmt::format("{} ({:.1f} us)", text, us_of(cost)), std::move(value)};
}

Finding find_socket() {
  UdpPortConfig config;
  config.local.address = *IpAddress::parse("127.0.0.1");
  auto socket = UdpSocket::open(config);
  if (!socket) return {"telemetry", "socket", Verdict::bad, socket.error().message(), nullptr};
  MemInfo info;
  const Nanos cost = median_cost([&](Instant) { info = socket.value().mem_info(); });
  if (info.sndbuf_bytes == 0)
    return {"telemetry", "socket", Verdict::bad, "this kernel has no SO_MEMINFO (before 4.12)",
            nullptr};
  return found("socket", "our own bytes below the socket: SO_MEMINFO",
               {{"wmem_bytes", info.wmem_bytes}, {"sndbuf_bytes", info.sndbuf_bytes}}, cost);
}

/// values_of lists the facts that are there, for people and for programs.
std::pair<std::string, Json> values_of(const law::LinkFacts& facts) {
  std::string text;
  Json json = Json::object();
  const auto add = [&](const char* key, const auto& value, const std::string& words) {
    json[key] = value;
    text += (text.empty() ? "" : ", ") + words;
  };
  if (facts.lower_queue) {
    const auto& queue = facts.lower_queue->value.queue;
    const Json capacity = queue.capacity == Bytes{} ? Json(nullptr) : Json(queue.capacity.count);
    add("backlog_bytes", queue.occupancy.count,
        fmt::format("backlog {} bytes of {}", queue.occupancy.count,
                    capacity.is_null() ? "an unknown limit" : capacity.dump()));
    json["capacity_bytes"] = capacity;
    json["drops_total"] = queue.refused_total;
  }
  if (facts.phy_rate)
    add("phy_rate_bps", bps(facts.phy_rate->value), "rate " + format_rate(facts.phy_rate->value));
  if (facts.exact_queue) {
    const auto& queue = facts.exact_queue->value.queue;
    add("queue_bytes", queue.occupancy.count, fmt::format("queue {} bytes", queue.occupancy.count));
  }
  if (facts.mac) {
    add("tx_failed_total", facts.mac->value.tx_failed_total,
        fmt::format("{} of {} frames failed", facts.mac->value.tx_failed_total,
                    facts.mac->value.tx_frames_total));
    json["tx_retries_total"] = facts.mac->value.tx_retries_total;
  }
  if (facts.channel) {
    json["channel_active_ns"] = facts.channel->value.active_total.count();
    if (facts.channel->value.busy_total)
      add("channel_busy_ns", facts.channel->value.busy_total->count(), "channel's busy time");
  }
  if (facts.own_airtime && facts.own_airtime->value.tx_total)
    add("airtime_tx_ns", facts.own_airtime->value.tx_total->count(), "own airtime");
  if (facts.stations)
    add("stations", facts.stations->value,
        fmt::format("{} active station(s)", facts.stations->value));
  if (facts.host) {
    add("softnet_dropped_total", facts.host->value.dropped_total,
        fmt::format("{} frames dropped by this host since it started",
                    facts.host->value.dropped_total));
    json["softnet_squeezed_total"] = facts.host->value.squeezed_total;
  }
  return {text, json};
}

/// add_wifi adds what laws do not read and people want to see.
void add_wifi(const link::Nl80211Source& wifi, std::string& text, Json& value) {
  value["stations_listed"] = wifi.list().size();
  if (wifi.interface().frequency_mhz) value["frequency_mhz"] = *wifi.interface().frequency_mhz;
  const auto& station = wifi.station();
  if (!station) {
    if (wifi.list().size() > 1)
      text += fmt::format("{}{} stations: which is the peer is known while sending",
                          text.empty() ? "" : ", ", wifi.list().size());
    return;
  }
  if (station->signal_dbm) value["signal_dbm"] = *station->signal_dbm;
  if (!station->tx_rate) return;
  value["tx_rate"] = link::to_text(*station->tx_rate);
  text += ", " + link::to_text(*station->tx_rate);
}

void find_link_sources(int ifindex, Diagnosis& out) {
  auto set = link::find_sources({.ifindex = ifindex});
  if (!set) return;
  for (const link::FoundSource& sensor : set.value()) {
    const auto add_bad = [&](const std::string& text) {
      out.findings.push_back({"telemetry", sensor.name, Verdict::bad, text, nullptr});
    };
    if (sensor.source == nullptr) {
      add_bad("no: " + sensor.reason);
      continue;
    }
    law::LinkFacts facts;
    const Nanos cost = median_cost([&](Instant now) { sensor.source->read(now, facts); });
    auto [text, value] = values_of(facts);
    if (const auto* wifi = dynamic_cast<const link::Nl80211Source*>(sensor.source.get()))
      add_wifi(*wifi, text, value);
    if (const auto& error = sensor.source->error()) {
      add_bad(error->message());
    } else if (value.empty()) {
      add_bad(sensor.is_of_link ? "it is there, and has nothing to tell (not connected?)"
                                : "no queue there (noqueue)");
    } else {
      if (!sensor.reason.empty()) text += "; " + sensor.reason;
      out.findings.push_back(found(sensor.name, text, std::move(value), cost));
    }
  }
}

}  // namespace

void find_telemetry(int ifindex, Diagnosis& out) {
  out.findings.push_back(find_socket());
  find_link_sources(ifindex, out);
}

}  // namespace onehop::tool
