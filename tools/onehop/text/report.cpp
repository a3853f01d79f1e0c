// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/text/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "tools/onehop/text/help.hpp"
#include "tools/onehop/text/quantity.hpp"
#include "tools/onehop/text/terminal.hpp"

namespace onehop::tool {

namespace {

Json queue_json(const api::Queue& queue) {
  return {{"scope", queue.scope},
          {"capacity_bytes", queue.capacity_bytes},
          {"occupancy_bytes_p50", queue.occupancy_bytes_p50},
          {"occupancy_bytes_p99", queue.occupancy_bytes_p99},
          {"occupancy_bytes_max", queue.occupancy_bytes_max},
          {"refused_total", queue.refused_total},
          {"underflow_ns_total", queue.underflow_ns_total}};
}

Json drops_json(const api::End& end) {
  if (!end.interface_drops) return nullptr;
  Json list = Json::array();
  for (const auto& [interface, frames] : *end.interface_drops)
    list.push_back({{"interface", interface}, {"tx_dropped_frames", frames}});
  return list;
}

/// drops_text is empty where none are known.
std::string drops_text(const api::End& end) {
  if (!end.interface_drops || end.interface_drops->empty()) return {};
  std::string text;
  for (const auto& [interface, frames] : *end.interface_drops)
    text += fmt::format("{}{} frames dropped by interface {}", text.empty() ? "" : ", ", frames,
                        interface);
  return text + (end.interface_drops->size() > 1
                     ? " meanwhile, whoever sent them; one may be in both counts"
                     : " meanwhile, whoever sent them");
}

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Json json_of(const api::Started& started) {
  if (started.role == api::Role::sending)
    return {{"role", name_of(started.role)},
            {"to", started.to},
            {"files", started.found.files},
            {"folders", started.found.folders},
            {"bytes_total", started.found.bytes_total},
            {"is_complete", started.is_all_found},
            {"version", started.version}};
  return {{"role", name_of(started.role)},
          {"listen", started.listen},
          {"directory", started.directory},
          {"version", started.version}};
}

Json json_of(const api::Found& found) {
  return {{"files", found.files},
          {"folders", found.folders},
          {"bytes_total", found.bytes_total},
          {"hard_links", found.hard_links}};
}

Json json_of(const api::LeftOut& left_out) {
  const auto failures = std::ranges::count_if(left_out.items, &api::LeftOut::Item::is_failure);
  return {{"count", left_out.items.size()}, {"failures", failures}};
}

Json json_of(const api::PortOpened& opened) {
  return {{"io_requested", opened.io_requested},
          {"io_used", opened.io_used},
          {"io_mode", opened.io_mode},
          {"io_reason", opened.io_reason}};
}

Json json_of(const api::Interval& interval) {
  return {{"t_ns", interval.t_ns},
          {"phase", name_of(interval.phase)},
          {"bytes_total", interval.bytes_total},
          {"files_done", interval.files_done},
          {"files_total", interval.files_total},
          {"is_all_known", interval.is_all_known},
          {"eta_seconds", number_or_null(interval.eta_seconds)},
          {"goodput_bps", interval.goodput_bps},
          {"rate_bps", interval.rate_bps},
          {"bottleneck", interval.bottleneck},
          {"tx_queue_bytes", interval.tx_queue_bytes},
          {"rx_ring_bytes", interval.rx_ring_bytes},
          {"app_buffer_bytes", interval.app_buffer_bytes},
          {"srtt_ns", interval.srtt_ns}};
}

Json json_of(const api::FileDone& file) {
  return {{"name", file.name},
          {"bytes", file.bytes},
          {"digest_kind", file.digest_kind},
          {"digest", file.is_verified ? Json(file.digest) : Json(nullptr)},
          {"verified", file.is_verified},
          {"outcome", name_of(file.outcome)},
          {"path", file.path}};
}

Json json_of(const api::End& e) {
  Json tx = queue_json(e.tx_queue);
  tx["occupancy_bytes_mean"] = e.tx_queue_mean_bytes;
  tx["target_bytes"] = e.tx_queue_target_bytes;
  return {{"role", name_of(e.role)},
          {"exit_code", static_cast<int>(e.exit_code)},
          {"bytes_total", e.bytes_total},
          {"bytes_skipped_total", e.bytes_skipped_total},
          {"bytes_hole_total", e.bytes_hole_total},
          {"seconds", e.seconds},
          {"goodput_bps", e.goodput_bps()},
          {"cpu_seconds", e.cpu_seconds},
          {"softirq_seconds", number_or_null(e.softirq_seconds)},
          {"system_busy_seconds", number_or_null(e.system_busy_seconds)},
          {"cpu_ns_per_byte", e.cpu_ns_per_byte()},
          {"cpu_method", cpu_method},
          {"thread_cpu_seconds", e.thread_cpu_seconds},
          {"frames_total", e.frames_total},
          {"retransmitted_bytes_total", e.retransmitted_bytes_total},
          {"tail_probes_total", e.tail_probes_total},
          {"duplicate_bytes_total", e.duplicate_bytes_total},
          {"loss_ratio", e.loss_ratio},
          {"ce_packets_total", e.ce_packets_total},
          {"link_acked_total", e.link_acked_total},
          {"link_failed_total", e.link_failed_total},
          {"srtt_ns", e.srtt_ns},
          {"io_requested", e.io_requested},
          {"io_used", e.io_used},
          {"io_mode", e.io_mode},
          {"io_reason", e.io_reason},
          {"interface", e.interface},
          {"interface_drops", drops_json(e)},
          {"link_source", e.link_source},
          {"frame_bytes", e.frame_bytes},
          {"law", e.law},
          {"repair", e.repair},
          {"fragments", name_of(e.fragments)},
          {"tx_queue", tx},
          {"rx_ring", queue_json(e.rx_ring)},
          {"app_buffer", queue_json(e.app_buffer)},
          {"files_total", e.files_total},
          {"files_there_unread_total", e.files_there_unread_total},
          {"files_kept_total", e.files_kept_total},
          {"names_refused_total", e.names_refused_total},
          {"receipt_root", e.receipt_root.empty() ? Json(nullptr) : Json(e.receipt_root)},
          {"peer", e.peer},
          {"device", e.device.empty() ? Json(nullptr) : Json(e.device)},
          {"directory", e.directory},
          {"hash_ok", e.exit_code == api::Status::done && e.files_there_unread_total == 0},
          {"digest", e.digest},
          {"aead", e.aead},
          {"key_exchange", e.key_exchange},
          {"file_io", e.file_io},
          {"auth_failures_total", e.auth_failures_total},
          {"replays_total", e.replays_total},
          {"malformed_total", e.malformed_total},
          {"key_updates_total", e.key_updates_total},
          {"engine_turns_total", e.engine_turns_total},
          {"engine_wakeups_total", e.engine_wakeups_total},
          {"engine_syscalls_total", e.engine_syscalls_total},
          {"voluntary_switches_total", e.voluntary_switches_total},
          {"rss_bytes_max", e.rss_bytes_max},
          {"port_memory_bytes", e.port_memory_bytes},
          {"block_pool_bytes", e.block_pool_bytes}};
}

std::string io_text(const api::PortOpened& opened) {
  constexpr std::size_t indent = 5;  // below what follows "I/O: "
  const std::string before =
      opened.io_requested == "auto" ? ", because " : " in " + opened.io_mode + " mode, ";
  return wrap("I/O: " + opened.io_used + before + opened.io_reason, columns_max, indent);
}

std::string cost_text(const api::End& end) {
  const auto bytes = static_cast<double>(end.bytes_total - end.bytes_hole_total);
  if (bytes <= 0 || end.seconds <= 0 || end.engine_wakeups_total == 0) return {};
  const auto in_ns = [bytes](double seconds) { return seconds * 1e9 / bytes; };
  std::string threads;
  for (const auto& [name, seconds] : end.thread_cpu_seconds)
    threads += fmt::format(", {} {:.2f}", name, in_ns(seconds));
  if (end.softirq_seconds)
    threads += fmt::format(", ksoftirqd {:.2f}", in_ns(*end.softirq_seconds));
  const auto wakeups = static_cast<double>(end.engine_wakeups_total);
  return wrap(fmt::format("CPU: {:.2f} ns/B{}", end.cpu_ns_per_byte(), threads), columns_max, 5) +
         "\n" +
         wrap(fmt::format("wake-ups/s: engine {:.0f} ({:.0f} frames, {:.1f} system calls each), "
                          "all threads {:.0f}",
                          wakeups / end.seconds, static_cast<double>(end.frames_total) / wakeups,
                          static_cast<double>(end.engine_syscalls_total) / wakeups,
                          static_cast<double>(end.voluntary_switches_total) / end.seconds),
              columns_max, 12);
}

std::string file_text(const api::FileDone& done) {
  using enum api::Outcome;
  if (done.outcome == name_refused || done.outcome == name_taken) return {};
  const std::string what = done.final_name + "  " + format_bytes(done.bytes);
  if (done.is_verified)
    return fmt::format("{}  {}:{}{}", what, done.digest_kind, done.digest,
                       done.outcome == there ? "  was there already" : "");
  if (done.outcome == there_unread) return what + "  was there already, by its size and time";
  return done.final_name + (done.outcome == kept
                                ? ": kept what is there, which is not the same"
                                : ": kept what is there, which could not be compared");
}

void Reporter::event(const std::string& type, const Json& body) const {
  if (!is_json_) return;
  Json line{{"schema_version", schema_version}, {"type", type}};
  if (session_ != 0) line["session"] = session_;
  line.update(body);
  std::cout << line.dump(-1, ' ', true, Json::error_handler_t::replace) << '\n' << std::flush;
}

void Reporter::say(const std::string& text) const {
  if (!is_quiet_) tell(fitted(text + "\n"));
}

void Reporter::warn(const std::string& text) const {
  tell(fitted(fmt::format("onehop {}: {}\n", command_, text)));
}

void Reporter::error(const Error& error) const {
  tell(fitted(fmt::format("onehop {}: {}\n", command_, error.message())));
  event("error", {{"exit_code", static_cast<int>(error.code)},
                  {"attempt", error.attempt},
                  {"cause", error.cause},
                  {"hint", error.hint}});
}

void Reporter::interval(const api::Interval& interval) const {
  event("interval", json_of(interval));
}

/// The summary is the last that is said: what comes before it may be long.
void Reporter::end(const api::End& end) const {
  event("end", json_of(end));
  const bool is_done = end.exit_code == api::Status::done;
  if (!is_done && end.files_total == 0) return;
  const std::uint64_t there = std::min(end.bytes_skipped_total, end.bytes_total),
                      holes = std::min(end.bytes_hole_total, end.bytes_total - there),
                      moved = end.bytes_total - there - holes;
  if (there > 0)
    say(fmt::format("{} of {} were there already", format_bytes(there),
                    format_bytes(end.bytes_total)));
  if (holes > 0)
    say(fmt::format("{} of {} are holes", format_bytes(holes), format_bytes(end.bytes_total)));
  if (end.files_there_unread_total > 0)
    say(fmt::format("{} file{} compared by size and time alone (recv --quick)",
                    end.files_there_unread_total, end.files_there_unread_total == 1 ? "" : "s"));
  if (!end.receipt_root.empty()) say("receipt root " + end.receipt_root);
  if (const std::string drops = drops_text(end); !drops.empty()) say(drops);
  const std::string what = is_done && end.files_total == 1
                               ? end.path
                               : fmt::format("{} file{} in {}", end.files_total,
                                             end.files_total == 1 ? "" : "s", end.directory);
  say(fmt::format("{}, {} {}", what, end.role == api::Role::sending ? "at" : "from", end.peer));
  const double rate = end.seconds > 0 ? static_cast<double>(moved) / end.seconds : 0;
  say(fmt::format("{} in {:.2f} s  {}  {:.2f} ns/B  {:.2f} % lost  srtt {:.1f} ms  {}",
                  format_bytes(moved), end.seconds, format_rate({static_cast<std::int64_t>(rate)}),
                  end.cpu_ns_per_byte(), 100 * end.loss_ratio,
                  static_cast<double>(end.srtt_ns) / 1e6,
                  end.io_mode.empty() ? end.io_used : end.io_used + "/" + end.io_mode));
}

}  // namespace onehop::tool
