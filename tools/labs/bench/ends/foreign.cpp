// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/ends/foreign.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <thread>

#include "control/transfer/account/usage.hpp"
#include "engine/base/time.hpp"
#include "tools/labs/bench/ends/child.hpp"

namespace onehop::bench {

namespace {

constexpr Nanos listen_patience = 10s;
constexpr Nanos listen_poll = 10ms;
constexpr Nanos peer_end_patience = 10s;
constexpr double sender_spare_seconds = 60;
constexpr double foreign_bytes_per_second_min = 1e6;

/// A listening socket of the namespace that `pid` lives in, looked up without connecting: a server
/// for one client would count that.
bool is_listening(pid_t pid, int port, bool is_udp) {
  const std::string wanted = fmt::format(":{:04X} ", port);
  const char* state = is_udp ? " 07 " : " 0A ";
  for (const char* table : is_udp ? std::array{"udp", "udp6"} : std::array{"tcp", "tcp6"}) {
    std::ifstream file{fmt::format("/proc/{}/net/{}", pid, table)};
    for (std::string line; std::getline(file, line);) {
      const std::size_t at = line.find(wanted);
      if (at != std::string::npos && line.find(state, at) != std::string::npos) return true;
    }
  }
  return false;
}

Result<void> wait_listening(Child& receiver, const ForeignPair& pair) {
  const std::string attempt = "start " + pair.program + "'s receiving end";
  for (Nanos waited{0}; waited < listen_patience; waited += listen_poll) {
    if (!receiver.is_running())
      return Error{ExitCode::io_unavailable, attempt,
                   "it ended with " + std::to_string(receiver.exit_code()), pair.remedy};
    if (is_listening(receiver.pid(), pair.port, pair.is_udp)) return success();
    std::this_thread::sleep_for(listen_poll);
  }
  return Error{ExitCode::timed_out, attempt, "it does not listen"};
}

void add_cpu(RunResult& result, const std::string& side, Child& child, const Flow& flow) {
  Metrics& m = result.metrics;
  const CpuTime cpu = child.cpu_time();
  m[side + "_user_ns_per_byte"] = cpu.user_s * 1e9 / flow.bytes;
  m[side + "_system_ns_per_byte"] = cpu.system_s * 1e9 / flow.bytes;
  m[side + "_ns_per_byte"] = (cpu.user_s + cpu.system_s) * 1e9 / flow.bytes;
  m[side + "_switches_per_second"] = static_cast<double>(cpu.voluntary_switches) / flow.seconds;
  m["switches_per_second"] += m[side + "_switches_per_second"];
  m["cpu_seconds"] += cpu.user_s + cpu.system_s;
  if (const auto counts = child.counts()) {
    m["cycles_per_byte"] += static_cast<double>(counts->cycles) / flow.bytes;
    m["instructions_per_byte"] += static_cast<double>(counts->instructions) / flow.bytes;
  } else if (!child.counts_missing().empty()) {
    result.missing["cycles"] = child.counts_missing();
  }
}

}  // namespace

Result<RunResult> run_foreign(const BenchOptions& o, const Place& place, const ForeignPair& pair,
                              bool is_counted) {
  ONEHOP_TRY(receiver, Child::start_program(receiving_host(place, o.is_reverse), o.receiver_cpu,
                                            is_counted, pair.receiver));
  ONEHOP_TRYV(wait_listening(receiver, pair));
  transfer::UsageMeter usage;
  usage.open_span();
  usage.open_softirq();
  ONEHOP_TRY(sender, Child::start_program(sending_host(place, o.is_reverse), o.sender_cpu,
                                          is_counted, pair.sender));
  const double limit_s = sender_spare_seconds +
                         (o.bytes != 0 ? static_cast<double>(o.bytes) / foreign_bytes_per_second_min
                                       : o.seconds + o.omit_seconds);
  const bool is_done = sender.wait(Nanos{static_cast<Nanos::rep>(limit_s * 1e9)}) &&
                       receiver.wait(peer_end_patience);
  usage.close_span();
  if (!is_done) return Error{ExitCode::timed_out, "run " + pair.program, "it does not end"};
  ONEHOP_TRY(flow, pair.read(sender.output()));
  if (flow.bytes <= 0 || flow.seconds <= 0)
    return Error{ExitCode::internal_error, "run " + pair.program, "nothing arrived"};

  RunResult result;
  Metrics& m = result.metrics;
  m["bytes_total"] = flow.bytes;
  m["seconds"] = flow.seconds;
  m["goodput_bps"] = 8 * flow.bytes / flow.seconds;
  add_cpu(result, "sender", sender, flow);
  add_cpu(result, "receiver", receiver, flow);
  if (const auto softirq_s = usage.softirq_seconds()) m["softirq_seconds"] = *softirq_s;
  m["cpu_ns_per_byte"] =
      (m["cpu_seconds"] + usage.softirq_seconds().value_or(0)) * 1e9 / flow.bytes;
  if (const auto busy_s = usage.system_busy_seconds()) {
    m["system_busy_seconds"] = *busy_s;
    m["busy_ns_per_byte"] = *busy_s * 1e9 / flow.bytes;
  }
  return result;
}

}  // namespace onehop::bench
