// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/meters.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace onehop::bench {

namespace {

/// utime and stime in ticks, fields 14 and 15 after the command name in brackets (proc(5)).
bool read_ticks(const std::filesystem::path& stat, std::uint64_t& user, std::uint64_t& system) {
  std::ifstream file{stat};
  std::string text;
  if (!std::getline(file, text)) return false;
  std::istringstream rest{text.substr(text.rfind(')') + 2)};
  std::string field;
  for (int i = 3; i < 14; ++i) rest >> field;
  return static_cast<bool>(rest >> user >> system);
}

Result<Fd> open_counter(pid_t pid, std::uint64_t what) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = what;
  attributes.inherit = 1;
  Fd fd{static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC))};
  if (fd.is_open()) return fd;
  return errno_error(
      ExitCode::privilege_missing, "count cycles and instructions",
      "See /proc/sys/kernel/perf_event_paranoid; many virtual machines have no such counters");
}

}  // namespace

std::vector<ThreadTime> read_threads(pid_t pid) {
  std::vector<ThreadTime> threads;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator{"/proc/" + std::to_string(pid) + "/task", error}) {
    ThreadTime thread;
    const std::string tid = entry.path().filename();
    (void)std::from_chars(tid.data(), tid.data() + tid.size(), thread.tid);
    std::uint64_t user = 0, system = 0, run_ns = 0;
    std::getline(std::ifstream{entry.path() / "comm"} >> std::ws, thread.name);
    // As its program is called, which is no name of a thread.
    if (thread.tid == pid && thread.name == ::program_invocation_short_name) thread.name.clear();
    if (!read_ticks(entry.path() / "stat", user, system)) continue;  // it ended between two reads
    const double tick_s = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
    double total_s = static_cast<double>(user + system) * tick_s;
    if (std::ifstream{entry.path() / "schedstat"} >> run_ns)
      total_s = static_cast<double>(run_ns) / 1e9;
    const double share =
        user + system == 0 ? 0 : static_cast<double>(system) / static_cast<double>(user + system);
    thread.system_s = total_s * share;
    thread.user_s = total_s - thread.system_s;
    threads.push_back(std::move(thread));
  }
  return threads;
}

Result<PerfCounters> PerfCounters::open(pid_t pid) {
  PerfCounters counters;
  ONEHOP_TRY(cycles, open_counter(pid, PERF_COUNT_HW_CPU_CYCLES));
  ONEHOP_TRY(instructions, open_counter(pid, PERF_COUNT_HW_INSTRUCTIONS));
  counters.cycles_ = std::move(cycles);
  counters.instructions_ = std::move(instructions);
  return counters;
}

std::optional<PerfCounters::Counts> PerfCounters::read() const {
  Counts counts;
  if (::read(cycles_.get(), &counts.cycles, sizeof counts.cycles) != sizeof counts.cycles ||
      ::read(instructions_.get(), &counts.instructions, sizeof counts.instructions) !=
          sizeof counts.instructions)
    return std::nullopt;
  return counts;
}

EnergyMeter::EnergyMeter() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator{"/sys/class/powercap", error}) {
    const std::string name = entry.path().filename();
    // "intel-rapl:0" is a package; "intel-rapl:0:1" is a part of one, and "intel-rapl-mmio:0" the
    // same one again.
    if (!name.starts_with("intel-rapl:") || name.find(':', 11) != std::string::npos) continue;
    Package package{.path = entry.path() / "energy_uj"};
    std::uint64_t now = 0;
    if (!(std::ifstream{package.path} >> now) ||
        !(std::ifstream{entry.path() / "max_energy_range_uj"} >> package.range_microjoules)) {
      missing_ = "not available: " + package.path + " cannot be read (root only)";
      return;
    }
    packages_.push_back(std::move(package));
  }
  if (packages_.empty()) missing_ = "not available: /sys/class/powercap has no RAPL package";
}

EnergyMeter::Reading EnergyMeter::read() const {
  Reading reading;
  for (const Package& package : packages_) {
    std::uint64_t now = 0;
    std::ifstream{package.path} >> now;
    reading.microjoules.push_back(now);
  }
  return reading;
}

std::optional<double> EnergyMeter::joules(const Reading& before, const Reading& after) const {
  if (packages_.empty() || before.microjoules.size() != packages_.size() ||
      after.microjoules.size() != packages_.size())
    return std::nullopt;
  double sum = 0;
  for (std::size_t i = 0; i < packages_.size(); ++i) {
    const std::uint64_t wrap =
        after.microjoules[i] < before.microjoules[i] ? packages_[i].range_microjoules : 0;
    sum += static_cast<double>(after.microjoules[i] + wrap - before.microjoules[i]) / 1e6;
  }
  return sum;
}

}  // namespace onehop::bench
