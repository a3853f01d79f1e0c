// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "tools/onehop/help.hpp"
#include "tools/onehop/quantity.hpp"

namespace onehop::tool {

void tell(std::string_view text) noexcept { static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr)); }

const char* name_of(QueueScope scope) {
  switch (scope) {
    case QueueScope::none: return "none";
    case QueueScope::own_ring: return "own_ring";
    case QueueScope::driver: return "driver";
    case QueueScope::lower_queue: return "lower_queue";
  }
  return "none";
}

namespace {

Json queue_json(const QueueTelemetry& queue, const BufferUse& use) {
  return {{"scope", name_of(queue.scope)},
          {"capacity_bytes", queue.capacity.count},
          {"occupancy_bytes_p50", use.p50.count},
          {"occupancy_bytes_p99", use.p99.count},
          {"occupancy_bytes_max", use.max.count},
          {"refused_total", queue.refused_total},
          {"underflow_ns_total", use.underflow.count()}};
}

Json drops_json(const std::optional<std::vector<link::InterfaceDrops::Drops>>& drops) {
  if (!drops) return nullptr;
  Json list = Json::array();
  for (const auto& [interface, frames] : *drops) list.push_back({{"interface", interface}, {"tx_dropped_frames", frames}});
  return list;
}

std::string drops_text(const std::vector<link::InterfaceDrops::Drops>& drops) {
  std::string text;
  for (const auto& [interface, frames] : drops)
    text += fmt::format("{}{} frames dropped by interface {}", text.empty() ? "" : ", ", frames, interface);
  return text + (drops.size() > 1 ? " meanwhile, whoever sent them; one may be in both counts" : " meanwhile, whoever sent them");
}

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json end_json(const RunFacts& facts, const RateState& state, const UsageMeter& usage, ExitCode code) {
  const PathReport& path = state.path;
  const double cpu = UsageMeter::cpu_seconds();
  const double bytes = static_cast<double>(facts.bytes_total);
  Json tx = queue_json(path.tx_queue, state.tx_queue);
  tx["occupancy_bytes_mean"] = state.tx_queue_mean.count;
  tx["target_bytes"] = state.tx_queue_target.count;
  const double loss = path.packets_sent_total == 0 ? 0 : static_cast<double>(path.packets_lost_total) / static_cast<double>(path.packets_sent_total);
  return {{"role", facts.role},
          {"exit_code", static_cast<int>(code)},
          {"bytes_total", facts.bytes_total},
          {"bytes_skipped_total", facts.bytes_skipped_total},
          {"seconds", facts.seconds},
          {"goodput_bps", facts.seconds > 0 ? static_cast<std::int64_t>(8 * bytes / facts.seconds) : 0},
          {"cpu_seconds", cpu},
          {"softirq_seconds", number_or_null(usage.softirq_seconds())},
          {"system_busy_seconds", number_or_null(usage.system_busy_seconds())},
          {"cpu_ns_per_byte", bytes > 0 ? (cpu + usage.softirq_seconds().value_or(0)) * 1e9 / bytes : 0},
          {"cpu_method", cpu_method},
          {"thread_cpu_seconds", facts.thread_cpu_seconds},
          {"frames_total", path.counters.frames_sent_total + path.counters.frames_received_total},
          {"retransmitted_bytes_total", path.counters.retransmitted_bytes_total},
          {"tail_probes_total", path.counters.tail_probes_total},
          {"duplicate_bytes_total", path.counters.duplicate_bytes_total},
          {"loss_ratio", loss},
          {"ce_packets_total", path.packets_ce_total},
          {"link_acked_total", path.packets_link_acked_total},
          {"link_failed_total", path.packets_link_failed_total},
          {"srtt_ns", path.srtt.count()},
          {"io_requested", facts.io_requested},
          {"io_used", facts.io_used},
          {"io_mode", facts.io_mode},
          {"io_reason", facts.io_reason},
          {"interface", facts.interface},
          {"interface_drops", drops_json(facts.interface_drops)},
          {"link_source", facts.link_source},
          {"frame_bytes", facts.frame_bytes},
          {"law", facts.law},
          {"repair", facts.repair},
          {"fragments", facts.fragments},
          {"tx_queue", tx},
          {"rx_ring", queue_json(path.rx_ring, state.rx_ring)},
          {"app_buffer", queue_json(path.app_buffer, state.app_buffer)},
          {"files_total", facts.files_total},
          {"files_kept_total", facts.files_kept_total},
          {"peer", facts.peer},
          {"directory", facts.directory},
          {"hash_ok", facts.is_hash_ok},
          {"digest", facts.digest},
          {"aead", facts.aead},
          {"file_io", facts.file_io},
          {"auth_failures_total", path.counters.auth_failures_total},
          {"replays_total", path.counters.replays_total},
          {"malformed_total", path.counters.malformed_total},
          {"key_updates_total", path.counters.key_updates_total},
          {"engine_turns_total", path.counters.turns_total},
          {"engine_wakeups_total", path.counters.wakeups_total},
          {"engine_syscalls_total", path.counters.syscalls_total},
          {"voluntary_switches_total", facts.voluntary_switches_total},
          {"rss_bytes_max", UsageMeter::rss_bytes_max()},
          {"port_memory_bytes", facts.port.memory.count}};
}

}  // namespace

std::string io_text(const RunFacts& facts) {
  constexpr std::size_t indent = 5;  // below what follows "I/O: "
  const std::string before = facts.io_requested == "auto" ? ", because " : " in " + facts.io_mode + " mode, ";
  return wrap("I/O: " + facts.io_used + before + facts.io_reason, columns_max, indent);
}

void Reporter::event(const std::string& type, Json body) const {
  if (!is_json_) return;
  Json line{{"schema_version", schema_version}, {"type", type}};
  line.update(body);
  std::cout << line.dump(-1, ' ', true, Json::error_handler_t::replace) << '\n' << std::flush;
}

void Reporter::say(const std::string& text) const {
  if (!is_quiet_) tell(text + "\n");
}

void Reporter::warn(const std::string& text) const { tell(fmt::format("onehop {}: {}\n", command_, text)); }

void Reporter::error(const Error& error) const {
  tell(fmt::format("onehop {}: {}\n", command_, error.message()));
  event("error", {{"exit_code", static_cast<int>(error.code)},
                  {"attempt", error.attempt},
                  {"cause", error.cause},
                  {"hint", error.hint}});
}

void Reporter::end(const RunFacts& facts, const RateState& state, const UsageMeter& usage, ExitCode code) const {
  const Json body = end_json(facts, state, usage, code);
  event("end", body);
  if (code != ExitCode::done) return;
  say(fmt::format("{}, {} {}", facts.files_total == 1 ? facts.path : fmt::format("{} files in {}", facts.files_total, facts.directory),
                  facts.role == "send" ? "at" : "from", facts.peer));
  const std::string io = facts.io_mode.empty() ? facts.io_used : facts.io_used + "/" + facts.io_mode;
  const std::uint64_t there = std::min(facts.bytes_skipped_total, facts.bytes_total), moved = facts.bytes_total - there;
  if (there > 0) say(fmt::format("{} of {} were there already", format_bytes(there), format_bytes(facts.bytes_total)));
  say(fmt::format("{} in {:.2f} s  {}  {:.2f} ns/B  {:.2f} % lost  srtt {:.1f} ms  {}",
                  format_bytes(moved), facts.seconds,
                  format_rate({facts.seconds > 0 ? static_cast<std::int64_t>(static_cast<double>(moved) / facts.seconds) : 0}),
                  body["cpu_ns_per_byte"].get<double>(), 100 * body["loss_ratio"].get<double>(),
                  static_cast<double>(state.path.srtt.count()) / 1e6, io));
  if (facts.interface_drops && !facts.interface_drops->empty()) say(drops_text(*facts.interface_drops));
}

}  // namespace onehop::tool
