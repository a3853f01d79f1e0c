// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/service/metrics.hpp"

#include <fmt/format.h>

#include "engine/disk/replace_file.hpp"

namespace onehop::tool {

namespace {

/// quoted is a label's value: names are what devices and drivers say.
std::string quoted(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? "\\n" : std::string{c};
  }
  return text + '"';
}

/// family: of counters the samples have _total behind it.
void family(std::string& text, const char* name, const char* type, const char* help) {
  text += fmt::format("# TYPE onehop_{} {}\n# HELP onehop_{} {}\n", name, type, name, help);
}

double ratio_of(const api::Queue& queue) {
  return queue.capacity_bytes > 0 ? static_cast<double>(queue.occupancy_bytes_max) /
                                        static_cast<double>(queue.capacity_bytes)
                                  : 0;
}

}  // namespace

void Metrics::count(const api::End& end) {
  newest_ = end;
  Device& device = devices_[end.device];
  ++device.sessions[static_cast<int>(end.exit_code)];
  device.bytes += end.bytes_total;
  device.files += end.files_total;
  device.seconds += end.seconds;
  frames_ += end.frames_total;
  retransmitted_bytes_ += end.duplicate_bytes_total;
  auth_failures_ += end.auth_failures_total;
  ring_full_["rx_ring"] += end.rx_ring.refused_total;
  ring_full_["app_buffer"] += end.app_buffer.refused_total;
  for (const auto& [thread, seconds] : end.thread_cpu_seconds) thread_seconds_[thread] += seconds;
}

std::string Metrics::text() const {
  std::string text;
  family(text, "build_info", "gauge", "The program that wrote this.");
  text += fmt::format("onehop_build_info{{version={}}} 1\n", quoted(ONEHOP_VERSION));
  family(text, "sessions", "counter", "Sessions that ended, by exit code.");
  for (const auto& [name, device] : devices_)
    for (const auto& [code, count] : device.sessions)
      text += fmt::format("onehop_sessions_total{{device={},exit_code=\"{}\"}} {}\n", quoted(name),
                          code, count);
  const auto by_device = [&](const char* what, auto value) {
    for (const auto& [name, device] : devices_)
      text += fmt::format("onehop_{}{{device={}}} {}\n", what, quoted(name), value(device));
  };
  family(text, "bytes", "counter", "Bytes of files that are verified and in place.");
  by_device("bytes_total", [](const Device& device) { return device.bytes; });
  family(text, "files", "counter", "Files that are verified and in place.");
  by_device("files_total", [](const Device& device) { return device.files; });
  family(text, "transfer_seconds", "summary", "From the first data frame of a session to its end.");
  by_device("transfer_seconds_sum", [](const Device& device) { return device.seconds; });
  by_device("transfer_seconds_count", [](const Device& device) {
    std::uint64_t count = 0;
    for (const auto& [code, sessions] : device.sessions) count += sessions;
    return count;
  });
  family(text, "packets", "counter", "Frames of the data path, both ways.");
  text += fmt::format("onehop_packets_total {}\n", frames_);
  family(text, "duplicate_bytes", "counter", "Bytes that were here when they came again.");
  text += fmt::format("onehop_duplicate_bytes_total {}\n", retransmitted_bytes_);
  family(text, "auth_failures", "counter", "Frames that were not of the peer.");
  text += fmt::format("onehop_auth_failures_total {}\n", auth_failures_);
  family(text, "ring_full", "counter", "What a full buffer refused.");
  for (const auto& [ring, count] : ring_full_)
    text += fmt::format("onehop_ring_full_total{{ring={}}} {}\n", quoted(ring), count);
  family(text, "ring_occupancy_ratio", "gauge", "The fullest in the newest session.");
  text += fmt::format(
      "onehop_ring_occupancy_ratio{{ring=\"rx_ring\"}} {}\n"
      "onehop_ring_occupancy_ratio{{ring=\"app_buffer\"}} {}\n",
      ratio_of(newest_.rx_ring), ratio_of(newest_.app_buffer));
  family(text, "cpu_seconds", "counter", "CPU time of the threads, while sessions ran.");
  for (const auto& [thread, seconds] : thread_seconds_)
    text += fmt::format("onehop_cpu_seconds_total{{thread={}}} {}\n", quoted(thread), seconds);
  if (!newest_.io_used.empty()) {
    family(text, "backend_info", "gauge", "How frames came in the newest session, and why.");
    text += fmt::format("onehop_backend_info{{requested={},used={},reason={}}} 1\n",
                        quoted(newest_.io_requested), quoted(newest_.io_used),
                        quoted(newest_.io_reason));
  }
  return text + "# EOF\n";
}

Result<void> Metrics::write(const std::string& file) const {
  constexpr mode_t all_may_read = 0644;
  if (const int errno_value = disk::replace_file(file, text(), all_may_read); errno_value != 0)
    return errno_error(ExitCode::local_file_error, "write '" + file + "'",
                       "Name a file in a folder that this user can write to", errno_value);
  return success();
}

}  // namespace onehop::tool
