// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// medium: the radio medium of mac80211_hwsim, in user space. hwsim's own has no rate and no loss.
//
//   medium --mcs 3 --width 20             11ac, one stream; one frame in each exchange
//   medium --trace 0:3,1000:1,1500:- --period 2000   MCS by milliseconds; -: it stands still
//
// In the first network namespace, as root. Says "on the air", and at its end (SIGTERM, or
// --seconds) one line of JSON.
#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <sstream>

#include "tests/vm/medium.hpp"

using namespace onehop;
using namespace onehop::vm;

namespace {

volatile std::sig_atomic_t stop = 0;

// Ours: between the engine's threads and the kernel's own. Low: an exchange ends late, and the
// medium is slower than it says.
constexpr int priority = 20;
constexpr std::size_t radios_max = 8;

bool read_trace(const std::string& text, std::vector<TraceStep>& trace) {
  std::istringstream steps{text};
  for (std::string step; std::getline(steps, step, ',');) {
    const std::size_t colon = step.find(':');
    if (colon == std::string::npos) return false;
    const Nanos at = std::chrono::milliseconds{std::stol(step.substr(0, colon))};
    const std::string mcs = step.substr(colon + 1);
    if (!trace.empty() && at <= trace.back().at) return false;
    trace.push_back({.at = at, .mcs = {}});
    if (mcs != "-") trace.back().mcs = std::stoi(mcs);
  }
  return !trace.empty() && trace.front().at == Nanos{0};
}

}  // namespace

int main(int argc, char** argv) {
  MediumOptions options;
  options.channel = {.mode = {.standard = lab::air::Standard::ac, .width_mhz = 20, .streams = 1},
                     .window_mpdus = 1,
                     .stations = radios_max};
  std::string trace = "0:3";
  std::int64_t period_ms = 1000, seconds = 0;
  double repeated_permille = 0;
  CLI::App app{"the radio medium of mac80211_hwsim"};
  app.add_option_function<std::string>(
      "--mcs", [&](const std::string& mcs) { trace = "0:" + mcs; }, "MCS of 11ac, one stream (3)");
  app.add_option("--trace", trace, "MS:MCS,MS:MCS ...; - in place of an MCS: it stands still");
  app.add_option("--period", period_ms, "milliseconds after which the trace repeats (1000)");
  app.add_option("--width", options.channel.mode.width_mhz, "MHz: 20, 40, 80 or 160 (20)")
      ->check(CLI::IsMember({20, 40, 80, 160}));
  app.add_option("--aggregate", options.channel.window_mpdus, "most frames in one exchange (1)")
      ->check(CLI::Range(1, 64));
  app.add_option("--loss", options.loss_permille, "thousandths of the unicast data frames (0)")
      ->check(CLI::Range(0, 1000));
  app.add_option("--repeated", repeated_permille, "thousandths lost, and repeated by the MAC (0)")
      ->check(CLI::Range(0, 900));
  app.add_option("--seconds", seconds, "it ends by itself (never)");
  CLI11_PARSE(app, argc, argv);
  options.period = std::chrono::milliseconds{period_ms};
  if (seconds > 0) options.span = std::chrono::seconds{seconds};
  if (!read_trace(trace, options.trace) || options.period <= options.trace.back().at) {
    std::fprintf(stderr, "medium: no trace: %s\n", trace.c_str());
    return 2;
  }
  options.channel.loss_ppm = static_cast<std::uint32_t>(repeated_permille * 1000);
  auto socket = HwsimSocket::open();
  if (!socket) {
    std::fprintf(stderr, "medium: %s\n", socket.error().message().c_str());
    return 1;
  }
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, [](int) { stop = 1; });
  (void)::prctl(PR_SET_TIMERSLACK, 1);
  const sched_param realtime{.sched_priority = priority};
  (void)::sched_setscheduler(0, SCHED_FIFO, &realtime);
  Medium medium{std::move(socket).value(), options};
  std::puts("on the air");
  std::fflush(stdout);
  medium.run(stop);
  std::puts(medium.report().c_str());
  return 0;
}
