// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/stress/lab/lab_rings.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "engine/base/time.hpp"
#include "tools/labs/lab/lab.hpp"
#include "tools/labs/lab/process/run_tool.hpp"
#include "tools/labs/stress/lab/lab_transfer.hpp"
#include "tools/labs/stress/lab/work_folder.hpp"
#include "tools/labs/stress/random.hpp"
#include "tools/labs/stress/recovery.hpp"
#include "tools/labs/stress/schedule.hpp"
#include "tools/onehop/laboratories.hpp"

namespace onehop::stress {

namespace {

// 50 Mbit/s: four times as much is still little work for one core, a quarter is ten frames in the
// window below.
constexpr BytesPerSecond rate_usual = mbit_per_s(50);
constexpr const char* profile_text = "rate = \"50Mbit\"\nqueue = \"200KB\"\nburst = \"8KB\"\n";
constexpr const char* profile_name = "stress";
constexpr std::size_t file_bytes = 40'000'000;
constexpr std::size_t faults_per_schedule = 4;
constexpr Nanos settle = 300ms, between = 200ms;
constexpr int tries_max = 3;

/// Link changes the lab's link.
class Link {
 public:
  Link(const lab::HostNames& hosts, const lab::Profile& profile)
      : hosts_{hosts}, profile_{profile} {}
  [[nodiscard]] Result<void> set_rate(BytesPerSecond rate) {
    ONEHOP_TRYV(lab::set_link_rate(hosts_, profile_, rate));
    rate_ = rate;
    return success();
  }
  [[nodiscard]] Result<void> set_up(bool is_up) const {
    return set({"dev", lab::interface_a, is_up ? "up" : "down"});
  }
  [[nodiscard]] Result<void> set_mtu(const char* mtu) const {
    return set({"dev", lab::interface_a, "mtu", mtu});
  }
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

void pause_for(Nanos span) { std::this_thread::sleep_for(span); }

Result<void> set_fault(Fault fault, bool is_on, const LabTransfer& transfer, Link& link) {
  if (fault == Fault::drain_up) return link.set_rate(is_on ? rate_usual * Gain{4000} : rate_usual);
  if (fault == Fault::drain_down) return link.set_rate(is_on ? rate_usual * Gain{250} : rate_usual);
  if (fault == Fault::link_down) return link.set_up(!is_on);
  if (fault == Fault::mtu) return link.set_mtu(is_on ? "1400" : "1500");
  if (fault == Fault::receiver_stall)
    transfer.stop_receiver(is_on);
  else
    transfer.stop_sender(is_on);
  return success();
}

/// kinds_of lists what may be drawn.
std::vector<Fault> kinds_of(FaultSet set) {
  std::vector<Fault> kinds;
  for (std::size_t i = 0; i < faults; ++i)
    if ((set >> i & 1) != 0) kinds.push_back(static_cast<Fault>(i));
  return kinds;
}

/// play_fault begins a fault, waits, ends it, and tells how soon the link was full again: after the
/// end, and for a change of the rate also after its beginning.
Result<Recovery> play_fault(Fault fault, Nanos span, LabTransfer& transfer, Link& link) {
  const Flow flow{[&] { return transfer.bytes_arrived(); }, [&] { return transfer.is_running(); }};
  Recovery begun;
  Instant since = monotonic_now();  // before ip or tc begins: what it takes counts
  ONEHOP_TRYV(set_fault(fault, true, transfer, link));
  if (fault == Fault::drain_up || fault == Fault::drain_down)
    begun = watch_recovery(flow, link.rate(), since);
  pause_for(span);
  since = monotonic_now();
  ONEHOP_TRYV(set_fault(fault, false, transfer, link));
  return watch_recovery(flow, link.rate(), since).with_earlier(begun);
}

std::string again(const LabRingsOptions& options) {
  std::string words = fmt::format("onehop stress rings --lab --seed {}", options.seed);
  if (!options.io.empty()) words += " --io " + options.io;
  if (!options.law.empty()) words += " --law " + options.law;
  if (options.kinds == lab_faults) return words;
  for (const Fault fault : kinds_of(options.kinds))
    words.append(" --fault ").append(to_string(fault));
  return words;
}

class LabRings {
 public:
  LabRings(const LabRingsOptions& options, const lab::HostNames& hosts, const lab::Profile& profile,
           const WorkFolder& work)
      : options_{options},
        hosts_{hosts},
        link_{hosts, profile},
        work_{work},
        report_{options.seed, again(options), options.is_json, options.is_quiet} {}

  Result<int> play() {
    for (std::uint64_t i = 0; i < options_.count; ++i) {
      ONEHOP_TRYV(play_schedule(options_.first + i));
    }
    return report_.finish(options_.count);
  }

 private:
  Result<void> play_schedule(std::uint64_t index) {
    Random random{options_.seed, index};
    const std::string io = !options_.io.empty()   ? options_.io
                           : random.below(2) == 0 ? "udp"
                                                  : "afxdp";
    const std::string& what = random.below(2) == 0 ? file_ : tree_;
    const std::vector<Fault> kinds = kinds_of(options_.kinds);
    std::vector<std::pair<Fault, Nanos>> faults;
    for (std::size_t i = 0; i < faults_per_schedule; ++i)
      faults.push_back({kinds[random.below(kinds.size())],
                        static_cast<std::int64_t>(10 + random.below(140)) * 1ms});
    for (int tries = 1;; ++tries) {
      ONEHOP_TRY(is_trusted, play_once(index, io, what, faults));
      if (is_trusted || tries == tries_max) return success();
      report_.count_again();
    }
  }

  /// play_once returns false where the machine was too busy to tell; nothing of it is then kept.
  Result<bool> play_once(std::uint64_t index, const std::string& io, const std::string& what,
                         const std::vector<std::pair<Fault, Nanos>>& faults) {
    ONEHOP_TRYV(link_.set_rate(rate_usual));
    ONEHOP_TRYV(work_.empty_target());
    ONEHOP_TRY(program, tool::find_program("onehop"));
    ONEHOP_TRY(transfer, LabTransfer::start({.hosts = hosts_,
                                             .program = program,
                                             .folder = work_.path(),
                                             .file = what,
                                             .io = io,
                                             .law = options_.law}));
    pause_for(settle);
    std::vector<Recovery> recoveries;
    for (const auto& [fault, span] : faults) {
      if (!transfer.is_running()) break;
      ONEHOP_TRY(recovery, play_fault(fault, span, transfer, link_));
      recovery.schedule = index;
      recovery.io = io;
      recovery.fault = to_string(fault);
      recovery.span_ms = static_cast<double>(span.count()) / 1e6;
      if (!recovery.is_trusted && !recovery.is_in_time()) {
        ONEHOP_TRYV(transfer.finish());
        return false;
      }
      recoveries.push_back(recovery);
      pause_for(between);
    }
    ONEHOP_TRYV(transfer.finish());
    for (const Recovery& recovery : recoveries) report_.add(recovery);
    return true;
  }

  const LabRingsOptions& options_;
  const lab::HostNames& hosts_;
  Link link_;
  const WorkFolder& work_;
  const std::string file_ = work_.file(), tree_ = work_.tree();
  RecoveryReport report_;
};

constexpr const char* folder_variable = "ONEHOP_STRESS_FOLDER";

bool is_inside() {
  const char* const profile = std::getenv("ONEHOP_LAB_PROFILE");
  return profile != nullptr && std::string_view{profile} == profile_name &&
         std::getenv("ONEHOP_LAB_NAME") != nullptr && std::getenv(folder_variable) != nullptr;
}

std::vector<std::string> own_words(const LabRingsOptions& options) {
  std::vector<std::string> words{"/proc/self/exe", "rings", "--lab", "--seed",
                                 std::to_string(options.seed)};
  if (options.count == 1)
    words.insert(words.end(), {"--only", std::to_string(options.first)});
  else
    words.insert(words.end(), {"--schedules", std::to_string(options.count)});
  if (!options.io.empty()) words.insert(words.end(), {"--io", options.io});
  if (!options.law.empty()) words.insert(words.end(), {"--law", options.law});
  for (const Fault fault : kinds_of(options.kinds))
    words.insert(words.end(), {"--fault", std::string{to_string(fault)}});
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
    // Made and removed here, because an interruption ends the process in the lab at once.
    ONEHOP_TRY(work, WorkFolder::make());
    ::setenv(folder_variable, work.path().c_str(), 1);
    return lab.run(profile, lab::Host::caller, own_words(options), nullptr);
  }
  for (const char* const name : {"SUDO_UID", "SUDO_GID"})
    ::unsetenv(name);  // or the ends would give up the rights to our folder
  const lab::HostNames hosts{std::getenv("ONEHOP_LAB_NAME")};
  const WorkFolder work = WorkFolder::borrow(std::getenv(folder_variable));
  ONEHOP_TRYV(work.make_file(file_bytes));
  ONEHOP_TRYV(work.make_tree(file_bytes));
  return LabRings{options, hosts, profile, work}.play();
}

}  // namespace onehop::stress
