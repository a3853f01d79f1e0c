// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// iperf3 over the same lab link, in the same rounds, measured from outside as our own ends are: wait4 of both whole
// processes, ksoftirqd and busy time of the machine meanwhile.
#include <fmt/format.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "engine/base/time.hpp"
#include "tools/onehop/bench/child.hpp"
#include "tools/onehop/bench/link_points.hpp"
#include "tools/onehop/usage.hpp"

namespace onehop::bench {

namespace {

constexpr int first_port = 5201;
constexpr Nanos listen_patience = 10s;
constexpr Nanos listen_poll = 10ms;
constexpr Nanos end_patience = 10s;
constexpr double client_spare_seconds = 60;
constexpr double slowest_bytes_per_second = 1e6;
constexpr int udp_header_bytes = 28;  // IPv4 and UDP: a datagram fills a frame

/// A listening socket of the namespace that `pid` lives in, looked up without connecting: a server with -1 would count that.
bool is_listening(pid_t pid, int port) {
  const std::string wanted = fmt::format(":{:04X} ", port);
  for (const char* table : {"tcp", "tcp6"}) {
    std::ifstream file{fmt::format("/proc/{}/net/{}", pid, table)};
    for (std::string line; std::getline(file, line);) {
      const std::size_t at = line.find(wanted);
      if (at != std::string::npos && line.find(" 0A ", at) != std::string::npos) return true;
    }
  }
  return false;
}

Result<void> wait_listening(Child& server, int port) {
  for (Nanos waited{0}; waited < listen_patience; waited += listen_poll) {
    if (!server.is_running())
      return Error{ExitCode::io_unavailable, "start iperf3 -s", "it ended with " + std::to_string(server.exit_code()), "apt-get install iperf3"};
    if (is_listening(server.pid(), port)) return success();
    std::this_thread::sleep_for(listen_poll);
  }
  return Error{ExitCode::timed_out, "start iperf3 -s", "it does not listen"};
}

std::vector<std::string> client_command(const BenchOptions& o, const Place& place, bool is_udp) {
  std::vector<std::string> words{"iperf3", "-c", receiving_address(o.is_reverse), "-p", std::to_string(first_port), "-J"};
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  if (o.bytes != 0) add({"-n", std::to_string(o.bytes)});
  else add({"-t", fmt::format("{:.0f}", std::max(1.0, o.seconds))});  // iperf3 counts whole seconds
  if (o.omit_seconds > 0) add({"-O", fmt::format("{:.0f}", std::max(1.0, o.omit_seconds))});
  if (o.parallel > 1) add({"-P", std::to_string(o.parallel)});
  if (o.is_both_ways) add({"--bidir"});
  const std::string rate = o.rate.front() == "flood" ? "0" : o.rate.front().substr(0, o.rate.front().find("bit"));
  if (is_udp) add({"-u", "-b", rate, "-l", std::to_string(place.mtu_bytes - udp_header_bytes)});
  else add({"-C", "cubic"});
  if (!is_udp && rate != "0") add({"-b", rate});
  return words;
}

Result<double> received_bytes(const BenchOptions& o, const std::string& output, double& seconds) {
  const Json document = Json::parse(output, nullptr, false);
  if (document.is_discarded() || !document.contains("end") || document.contains("error"))
    return Error{ExitCode::internal_error, "read what iperf3 -J says",
                 document.contains("error") ? document["error"].get<std::string>() : "it is no JSON with an end"};
  const Json& end = document["end"];
  double bytes = 0;
  for (const char* key : {"sum_received", "sum_received_bidir_reverse"}) {
    if (!end.contains(key)) continue;
    bytes += end[key]["bytes"].get<double>();
    seconds = end[key]["seconds"].get<double>();
  }
  if (bytes == 0 && end.contains("sum")) {  // UDP before 3.13: what the sender counts, less what the receiver missed
    bytes = end["sum"]["bytes"].get<double>() * (1 - end["sum"]["lost_percent"].get<double>() / 100);
    seconds = end["sum"]["seconds"].get<double>();
  }
  // What flowed before -O's end was paid for and is not in the sums.
  return o.omit_seconds > 0 && seconds > 0 ? bytes * (1 + o.omit_seconds / seconds) : bytes;
}

Result<RunResult> run_iperf3(const BenchOptions& o, const Place& place, bool is_udp, bool is_counted) {
  ONEHOP_TRY(server, Child::start_program(receiving_host(place, o.is_reverse), o.receiver_cpu, is_counted, {"iperf3", "-s", "-1", "-p", std::to_string(first_port)}));
  ONEHOP_TRYV(wait_listening(server, first_port));
  tool::UsageMeter usage;
  usage.open_span();
  ONEHOP_TRY(client, Child::start_program(sending_host(place, o.is_reverse), o.sender_cpu, is_counted, client_command(o, place, is_udp)));
  const double limit_s = client_spare_seconds + (o.bytes != 0 ? static_cast<double>(o.bytes) / slowest_bytes_per_second : o.seconds + o.omit_seconds);
  const bool is_done = client.wait(Nanos{static_cast<Nanos::rep>(limit_s * 1e9)}) && server.wait(end_patience);
  usage.close_span();
  if (!is_done) return Error{ExitCode::timed_out, "run iperf3", "it does not end"};
  double seconds = 0;
  ONEHOP_TRY(bytes, received_bytes(o, client.output(), seconds));
  if (bytes <= 0 || seconds <= 0) return Error{ExitCode::internal_error, "run iperf3", "nothing arrived"};

  RunResult result;
  Metrics& m = result.metrics;
  m["bytes_total"] = bytes;
  m["seconds"] = seconds;
  m["goodput_bps"] = 8 * bytes / (seconds + o.omit_seconds);
  for (auto& [side, child] : {std::pair{std::string{"sender"}, &client}, std::pair{std::string{"receiver"}, &server}}) {
    const CpuTime cpu = child->cpu_time();
    m[side + "_user_ns_per_byte"] = cpu.user_s * 1e9 / bytes;
    m[side + "_system_ns_per_byte"] = cpu.system_s * 1e9 / bytes;
    m[side + "_ns_per_byte"] = (cpu.user_s + cpu.system_s) * 1e9 / bytes;
    m[side + "_switches_per_second"] = static_cast<double>(cpu.voluntary_switches) / seconds;
    m["switches_per_second"] += m[side + "_switches_per_second"];
    m["cpu_seconds"] += cpu.user_s + cpu.system_s;
    if (const auto counts = child->counts()) {
      m["cycles_per_byte"] += static_cast<double>(counts->cycles) / bytes;
      m["instructions_per_byte"] += static_cast<double>(counts->instructions) / bytes;
    } else if (is_counted) {
      result.missing["cycles"] = child->counts_missing();
    }
  }
  if (const auto softirq_s = usage.softirq_seconds()) m["softirq_seconds"] = *softirq_s;
  m["cpu_ns_per_byte"] = (m["cpu_seconds"] + usage.softirq_seconds().value_or(0)) * 1e9 / bytes;
  if (const auto busy_s = usage.system_busy_seconds()) {
    m["system_busy_seconds"] = *busy_s;
    m["busy_ns_per_byte"] = *busy_s * 1e9 / bytes;
  }
  return result;
}

}  // namespace

Point iperf3_point(const BenchOptions& options, const Place& place, bool is_udp) {
  return {.name = is_udp ? "iperf3-udp" : "iperf3-tcp", .settings = {{"program", "iperf3"}, {"command", join(client_command(options, place, is_udp), " ")}},
          .run = [&options, &place, is_udp](const RunMode& mode) { return run_iperf3(options, place, is_udp, mode.is_counted); },
          .is_counted_apart = true};
}

}  // namespace onehop::bench
