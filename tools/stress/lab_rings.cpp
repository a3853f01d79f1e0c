// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/stress/lab_rings.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "engine/base/time.hpp"
#include "tools/lab/lab.hpp"
#include "tools/lab/run_tool.hpp"
#include "tools/stress/lab_transfer.hpp"
#include "tools/stress/random.hpp"
#include "tools/stress/schedule.hpp"

namespace onehop::stress {

namespace {

// 50 Mbit/s: four times as much is still little work for one core, a quarter is ten frames in the window below.
constexpr BytesPerSecond rate_usual = mbit_per_s(50);
constexpr const char* profile_text = "rate = \"50Mbit\"\nqueue = \"200KB\"\nburst = \"8KB\"\n";
constexpr const char* profile_name = "stress";
constexpr std::size_t file_bytes = 40'000'000;
constexpr std::size_t faults_per_schedule = 4;
constexpr Nanos settle = 300ms, between = 200ms;
constexpr Nanos recovery_max = 100ms, recovery_watch = 1s, window = 20ms, look = 1ms;
constexpr std::int64_t recovered_percent = 90;
// A look that comes this late leaves less than half of a window to be seen.
constexpr Nanos late = 10ms;
constexpr int tries_max = 3;
constexpr std::array kinds{Fault::receiver_stall, Fault::sender_stall, Fault::drain_up, Fault::drain_down, Fault::link_down, Fault::mtu};

struct Recovery {
  std::uint64_t schedule = 0;
  std::string io, fault;
  double span_ms = 0, recovery_ms = 0;
  bool is_trusted = false, is_recovered = false;
};

/// Work is the folder of a run, gone with it.
class Work {
 public:
  [[nodiscard]] static Result<Work> make() {
    std::string path = (std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp") + std::string{"/onehop-stress-XXXXXX"};
    if (::mkdtemp(path.data()) == nullptr) return errno_error(ExitCode::local_file_error, "make a folder for the lab's files");
    std::filesystem::create_directory(path + "/in");
    Work work{path};
    std::ofstream out{work.file(), std::ios::binary};
    Random random{1, 0};
    for (std::size_t i = 0; i < file_bytes; i += sizeof(std::uint64_t)) {
      const std::uint64_t word = random.next();
      out.write(reinterpret_cast<const char*>(&word), sizeof word);
    }
    if (!out.flush()) return errno_error(ExitCode::local_file_error, "write " + work.file());
    return work;
  }
  Work(Work&& other) noexcept : path_{std::exchange(other.path_, {})} {}
  Work& operator=(Work&&) = delete;
  ~Work() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file() const { return path_ + "/file.bin"; }

 private:
  explicit Work(std::string path) : path_{std::move(path)} {}
  std::string path_;
};

/// Link changes the lab's link.
class Link {
 public:
  Link(const lab::HostNames& hosts, const lab::Profile& profile) : hosts_{hosts}, profile_{profile} {}
  [[nodiscard]] Result<void> set_rate(BytesPerSecond rate) {
    ONEHOP_TRYV(lab::set_link_rate(hosts_, profile_, rate));
    rate_ = rate;
    return success();
  }
  [[nodiscard]] Result<void> set_up(bool is_up) const { return set({"dev", lab::interface_a, is_up ? "up" : "down"}); }
  [[nodiscard]] Result<void> set_mtu(const char* mtu) const { return set({"dev", lab::interface_a, "mtu", mtu}); }
  [[nodiscard]] BytesPerSecond rate() const { return rate_; }

 private:
  [[nodiscard]] Result<void> set(const std::vector<std::string>& words) const {
    std::vector<std::string> command{"ip", "-n", hosts_.a, "link", "set"};
    command.insert(command.end(), words.begin(), words.end());
    ONEHOP_TRYV(lab::run_tool(command));
    return success();
  }
  const lab::HostNames& hosts_;
  const lab::Profile& profile_;
  BytesPerSecond rate_ = rate_usual;
};

/// watch_recovery looks each millisecond until a window carries 90 % of what the link can.
Recovery watch_recovery(LabTransfer& transfer, BytesPerSecond rate) {
  struct Look {
    Instant at;
    std::uint64_t bytes;
  };
  std::vector<Look> looks;
  const Instant start = monotonic_now();
  looks.push_back({start, transfer.bytes_arrived()});
  Recovery out{.is_trusted = true};
  std::size_t first = 0;
  while (looks.back().at - start < recovery_watch && transfer.is_running()) {
    std::this_thread::sleep_for(look);
    const Instant now = monotonic_now();
    out.is_trusted = out.is_trusted && now - looks.back().at < late;
    looks.push_back({now, transfer.bytes_arrived()});
    while (now - looks[first + 1].at >= window) ++first;
    const Nanos span = now - looks[first].at;
    const auto carried = static_cast<std::int64_t>(looks.back().bytes - looks[first].bytes);
    if (span < window || carried * 100 < (rate * span).count * recovered_percent) continue;
    out.is_recovered = true;
    out.recovery_ms = static_cast<double>((looks[first].at - start).count()) / 1e6;
    return out;
  }
  out.recovery_ms = static_cast<double>((looks.back().at - start).count()) / 1e6;
  // A file that came to its end before the link was full says nothing.
  out.is_trusted = out.is_trusted && transfer.is_running();
  return out;
}

void pause_for(Nanos span) { std::this_thread::sleep_for(span); }

Result<void> set_fault(Fault fault, bool is_on, const LabTransfer& transfer, Link& link) {
  if (fault == Fault::drain_up) return link.set_rate(is_on ? rate_usual * Gain{4000} : rate_usual);
  if (fault == Fault::drain_down) return link.set_rate(is_on ? rate_usual * Gain{250} : rate_usual);
  if (fault == Fault::link_down) return link.set_up(!is_on);
  if (fault == Fault::mtu) return link.set_mtu(is_on ? "1400" : "1500");
  if (fault == Fault::receiver_stall) transfer.stop_receiver(is_on);
  else transfer.stop_sender(is_on);
  return success();
}

/// play_fault begins a fault, waits, ends it, and tells how soon the link was full again: after the end, and for a change of the
/// rate also after its beginning.
Result<Recovery> play_fault(Fault fault, Nanos span, LabTransfer& transfer, Link& link) {
  Recovery begun{.is_trusted = true, .is_recovered = true};
  ONEHOP_TRYV(set_fault(fault, true, transfer, link));
  if (fault == Fault::drain_up || fault == Fault::drain_down) begun = watch_recovery(transfer, link.rate());
  pause_for(span);
  ONEHOP_TRYV(set_fault(fault, false, transfer, link));
  Recovery ended = watch_recovery(transfer, link.rate());
  ended.recovery_ms = std::max(ended.recovery_ms, begun.recovery_ms);
  ended.is_trusted = ended.is_trusted && begun.is_trusted;
  ended.is_recovered = ended.is_recovered && begun.is_recovered;
  return ended;
}

bool is_well(const Recovery& recovery) { return recovery.is_recovered && recovery.recovery_ms <= static_cast<double>(recovery_max / 1ms); }

class LabRings {
 public:
  LabRings(const LabRingsOptions& options, const lab::HostNames& hosts, const lab::Profile& profile, const Work& work)
      : options_{options}, hosts_{hosts}, link_{hosts, profile}, work_{work} {}

  Result<int> play() {
    for (std::uint64_t i = 0; i < options_.count; ++i) {
      ONEHOP_TRYV(play_schedule(options_.first + i));
    }
    return report();
  }

 private:
  Result<void> play_schedule(std::uint64_t index) {
    Random random{options_.seed, index};
    const std::string io = !options_.io.empty() ? options_.io : random.below(2) == 0 ? "udp" : "afxdp";
    std::vector<std::pair<Fault, Nanos>> faults;
    for (std::size_t i = 0; i < faults_per_schedule; ++i)
      faults.push_back({kinds[random.below(kinds.size())], static_cast<std::int64_t>(10 + random.below(140)) * 1ms});
    for (int tries = 1;; ++tries) {
      ONEHOP_TRY(is_trusted, play_once(index, io, faults));
      if (is_trusted || tries == tries_max) return success();
      ++again_;
    }
  }

  /// play_once returns false where the machine was too busy to tell; nothing of it is then kept.
  Result<bool> play_once(std::uint64_t index, const std::string& io, const std::vector<std::pair<Fault, Nanos>>& faults) {
    ONEHOP_TRYV(link_.set_rate(rate_usual));
    ONEHOP_TRY(transfer, LabTransfer::start({.hosts = hosts_, .program = "/proc/self/exe", .folder = work_.path(), .file = work_.file(),
                                             .io = io, .law = options_.law}));
    pause_for(settle);
    std::vector<Recovery> recoveries;
    for (const auto& [fault, span] : faults) {
      if (!transfer.is_running()) break;
      ONEHOP_TRY(recovery, play_fault(fault, span, transfer, link_));
      recovery.schedule = index;
      recovery.io = io;
      recovery.fault = to_string(fault);
      recovery.span_ms = static_cast<double>(span.count()) / 1e6;
      if (!recovery.is_trusted && !is_well(recovery)) {
        ONEHOP_TRYV(transfer.finish());
        untrusted_.push_back(recovery);
        return false;
      }
      recoveries.push_back(recovery);
      pause_for(between);
    }
    ONEHOP_TRYV(transfer.finish());
    for (const Recovery& recovery : recoveries) tell(recovery);
    all_.insert(all_.end(), recoveries.begin(), recoveries.end());
    return true;
  }

  void tell(const Recovery& r) const {
    if (options_.is_json)
      fmt::print("{}\n", nlohmann::ordered_json{{"schema_version", 1}, {"type", "stress_lab_fault"}, {"seed", options_.seed}, {"schedule", r.schedule},
                                                {"io", r.io}, {"fault", r.fault}, {"span_ms", r.span_ms}, {"recovery_ms", r.recovery_ms},
                                                {"is_recovered", is_well(r)}}.dump());
    else if (!options_.is_quiet)
      fmt::print("schedule {:>3}  {:<5}  {:<14}  {:>4.0f} ms   full again after {:>5.1f} ms{}\n", r.schedule, r.io, r.fault, r.span_ms, r.recovery_ms,
                 is_well(r) ? "" : "   TOO LATE");
    std::fflush(stdout);
  }

  int report() const {
    std::size_t late_total = 0;
    double worst = 0;
    for (const Recovery& recovery : all_) {
      worst = std::max(worst, recovery.recovery_ms);
      if (is_well(recovery)) continue;
      ++late_total;
      fmt::print(stderr, "onehop stress: schedule {} of seed {}: {} of {:.0f} ms over {}: full again after {:.1f} ms, more than {} ms\n  this one alone: "
                         "onehop stress rings --lab --seed {} --only {}\n",
                 recovery.schedule, options_.seed, recovery.fault, recovery.span_ms, recovery.io, recovery.recovery_ms, recovery_max / 1ms, options_.seed, recovery.schedule);
    }
    // A schedule that could never be judged is no success.
    const bool is_judged = !all_.empty();
    if (options_.is_json)
      fmt::print("{}\n", nlohmann::ordered_json{{"schema_version", 1}, {"type", "stress_lab"}, {"seed", options_.seed}, {"schedules_total", options_.count},
                                                {"faults_total", all_.size()}, {"late_total", late_total}, {"recovery_ms_max", worst},
                                                {"played_again_total", again_}, {"is_held", late_total == 0 && is_judged}}.dump());
    else
      fmt::print("{} faults in {} schedules of seed {}: {} too late, the slowest {:.1f} ms; {} played again because this machine was too busy to tell\n",
                 all_.size(), options_.count, options_.seed, late_total, worst, again_);
    if (!is_judged) fmt::print(stderr, "onehop stress: nothing could be judged: this machine was too busy\n");
    return late_total == 0 && is_judged ? 0 : static_cast<int>(ExitCode::internal_error);
  }

  const LabRingsOptions& options_;
  const lab::HostNames& hosts_;
  Link link_;
  const Work& work_;
  std::vector<Recovery> all_, untrusted_;
  std::size_t again_ = 0;
};

bool is_inside() {
  const char* const profile = std::getenv("ONEHOP_LAB_PROFILE");
  return profile != nullptr && std::string_view{profile} == profile_name && std::getenv("ONEHOP_LAB_NAME") != nullptr;
}

std::vector<std::string> own_words(const LabRingsOptions& options) {
  std::vector<std::string> words{"/proc/self/exe", "stress", "rings", "--lab", "--seed", std::to_string(options.seed)};
  if (options.count == 1) words.insert(words.end(), {"--only", std::to_string(options.first)});
  else words.insert(words.end(), {"--schedules", std::to_string(options.count)});
  if (!options.io.empty()) words.insert(words.end(), {"--io", options.io});
  if (!options.law.empty()) words.insert(words.end(), {"--law", options.law});
  if (options.is_json) words.emplace_back("--json");
  if (options.is_quiet) words.emplace_back("--quiet");
  return words;
}

}  // namespace

Result<int> run_lab_rings(const LabRingsOptions& options) {
  ONEHOP_TRY(profile, lab::parse_profile(profile_text, profile_name));
  if (!is_inside()) {
    const std::string name = fmt::format("stress{}", ::getpid());
    ONEHOP_TRY(lab, lab::Lab::open(name));
    ::setenv("ONEHOP_CODE", "a-code-for-the-lab-that-nobody-else-sees", 0);
    return lab.run(profile, lab::Host::caller, own_words(options));
  }
  for (const char* const name : {"SUDO_UID", "SUDO_GID"}) ::unsetenv(name);  // or the ends would give up the rights to our folder
  const lab::HostNames hosts{std::getenv("ONEHOP_LAB_NAME")};
  ONEHOP_TRY(work, Work::make());
  return LabRings{options, hosts, profile, work}.play();
}

}  // namespace onehop::stress
