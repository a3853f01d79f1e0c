// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/stress/lab/iface_rings.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include "engine/base/time.hpp"
#include "tools/labs/stress/lab/lab_transfer.hpp"
#include "tools/labs/stress/lab/work_folder.hpp"
#include "tools/labs/stress/random.hpp"
#include "tools/labs/stress/recovery.hpp"
#include "tools/onehop/laboratories.hpp"

namespace onehop::stress {

namespace {

// Sparse, never sent to its end: 13 s at 10 Gbit/s
constexpr std::int64_t file_bytes = 16'000'000'000;
constexpr std::size_t faults_per_schedule = 4;
constexpr Nanos settle = 500ms, measured = 200ms, patience = 30s, poll_interval = 1ms;
constexpr std::uint64_t flowing_bytes = 1'000'000;
constexpr int tries_max = 3;

class InterfaceRings {
 public:
  InterfaceRings(const InterfaceRingsOptions& options, const WorkFolder& work)
      : options_{options},
        work_{work},
        report_{options.seed, again(options), options.is_json, options.is_quiet} {}

  Result<int> play() {
    counter_ =
        Fd{::open(fmt::format("/sys/class/net/{}/statistics/tx_bytes", options_.interface).c_str(),
                  O_RDONLY | O_CLOEXEC)};
    if (!counter_.is_open())
      return errno_error(ExitCode::io_unavailable, "read what " + options_.interface + " has sent");
    for (std::uint64_t i = 0; i < options_.count; ++i) {
      ONEHOP_TRYV(play_schedule(options_.first + i));
    }
    return report_.finish(options_.count);
  }

 private:
  static std::string again(const InterfaceRingsOptions& options) {
    return fmt::format("onehop stress rings --iface {} --to {} --seed {}", options.interface,
                       options.to, options.seed);
  }

  // bytes_sent only grows. A driver that rebuilds its queues for AF_XDP counts from nothing again
  // (igb), and the difference of two readings would be an enormous number.
  std::uint64_t bytes_sent() {
    std::array<char, 32> text{};
    const ssize_t length = ::pread(counter_.get(), text.data(), text.size(), 0);
    std::uint64_t bytes = 0;
    if (length > 0) (void)std::from_chars(text.data(), text.data() + length, bytes);
    bytes_sent_ += bytes >= reading_ ? bytes - reading_ : bytes;
    reading_ = bytes;
    return bytes_sent_;
  }

  Result<Child> start() {
    ONEHOP_TRY(program, tool::find_program("onehop"));
    std::vector<std::string> command{program,     "send",    work_.file(),       "--to",
                                     options_.to, "--iface", options_.interface, "--quiet"};
    if (!options_.io.empty()) command.insert(command.end(), {"--io", options_.io});
    if (!options_.law.empty()) command.insert(command.end(), {"--law", options_.law});
    ONEHOP_TRY(child, Child::start("", command, work_.path() + "/send.txt"));
    const std::uint64_t before = bytes_sent();
    for (Nanos waited{0}; waited < patience && !child.poll(); waited += poll_interval) {
      if (bytes_sent() - before > flowing_bytes) return std::move(child);
      std::this_thread::sleep_for(poll_interval);
    }
    return Error{ExitCode::peer_unreachable, "start a transfer to " + options_.to, "no data flows",
                 "send said: " + child.said(), 0};
  }

  Result<void> play_schedule(std::uint64_t index) {
    for (int tries = 1;; ++tries) {
      ONEHOP_TRY(is_trusted, play_once(index));
      if (is_trusted || tries == tries_max) return success();
      report_.count_again();
    }
  }

  Result<bool> play_once(std::uint64_t index) {
    Random random{options_.seed, index};
    ONEHOP_TRY(child, start());
    const Flow flow{[&] { return bytes_sent(); }, [&] { return !child.poll(); }};
    std::this_thread::sleep_for(settle);
    std::vector<Recovery> recoveries;
    bool is_trusted = true;
    for (std::size_t i = 0; i < faults_per_schedule && is_trusted && flow.is_running(); ++i) {
      const Nanos span = static_cast<std::int64_t>(10 + random.below(140)) * 1ms;
      const BytesPerSecond usual = measure_rate(flow, measured);
      if (usual <= BytesPerSecond{0} && flow.is_running())  // anything is as busy as that
        return Error{ExitCode::peer_unreachable, "watch the transfer to " + options_.to,
                     "no data flows", "send said: " + child.said(), 0};
      child.signal(SIGSTOP);
      std::this_thread::sleep_for(span);
      const Instant since = monotonic_now();
      child.signal(SIGCONT);
      Recovery recovery = watch_recovery(flow, usual, since);
      recovery.schedule = index;
      recovery.io = options_.io.empty() ? "auto" : options_.io;
      recovery.fault = "sender-stall";
      recovery.span_ms = static_cast<double>(span.count()) / 1e6;
      is_trusted = recovery.is_trusted || recovery.is_in_time();
      recoveries.push_back(recovery);
    }
    child.signal(SIGINT);
    for (Nanos waited{0}; waited < patience && !child.poll(); waited += poll_interval)
      std::this_thread::sleep_for(poll_interval);
    const bool is_orderly =
        child.poll() &&
        (child.code() == 0 || child.code() == static_cast<int>(ExitCode::interrupted));
    if (!is_orderly)
      return Error{ExitCode::internal_error, "end the transfer",
                   fmt::format("send ended with {}", child.code()), child.said(), 0};
    if (!is_trusted) return false;
    for (const Recovery& recovery : recoveries) report_.add(recovery);
    return true;
  }

  const InterfaceRingsOptions& options_;
  const WorkFolder& work_;
  RecoveryReport report_;
  Fd counter_;
  std::uint64_t reading_ = 0, bytes_sent_ = 0;
};

}  // namespace

Result<int> run_interface_rings(const InterfaceRingsOptions& options) {
  if (::if_nametoindex(options.interface.c_str()) == 0)
    return Error{ExitCode::io_unavailable, "use interface '" + options.interface + "'",
                 "there is none of this name", "`ip link` lists the interfaces", 0};
  if (std::getenv("ONEHOP_CODE") == nullptr)
    return Error{ExitCode::usage, "send to " + options.to, "there is no code",
                 "Set ONEHOP_CODE to what `onehop recv` shows or was given", 0};
  ONEHOP_TRY(work, WorkFolder::make());
  ONEHOP_TRYV(work.make_sparse(file_bytes));
  return InterfaceRings{options, work}.play();
}

}  // namespace onehop::stress
