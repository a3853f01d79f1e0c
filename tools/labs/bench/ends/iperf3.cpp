// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// iperf3 as a baseline: the sending end connects to a server that takes one client.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/labs/bench/ends/foreign.hpp"

namespace onehop::bench {

namespace {

constexpr int iperf3_port = 5201;
constexpr int udp_header_bytes = 28;  // IPv4 and UDP: a datagram fills a frame

/// whole_seconds: iperf3 takes no parts of one.
long whole_seconds(double seconds) { return std::max(1L, std::lround(seconds)); }

std::vector<std::string> client_command(const BenchOptions& o, const Place& place, bool is_udp) {
  std::vector<std::string> words{
      "iperf3", "-c", receiving_address(o.is_reverse), "-p", std::to_string(iperf3_port), "-J"};
  const auto add = [&](std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
  };
  if (o.bytes != 0)
    add({"-n", std::to_string(o.bytes)});
  else
    add({"-t", std::to_string(whole_seconds(o.seconds))});
  if (o.omit_seconds > 0) add({"-O", std::to_string(whole_seconds(o.omit_seconds))});
  if (o.parallel > 1) add({"-P", std::to_string(o.parallel)});
  if (o.is_both_ways) add({"--bidir"});
  const std::string rate =
      o.rate.front() == "flood" ? "0" : o.rate.front().substr(0, o.rate.front().find("bit"));
  if (is_udp)
    add({"-u", "-b", rate, "-l", std::to_string(place.mtu_bytes - udp_header_bytes)});
  else
    add({"-C", "cubic"});
  if (!is_udp && rate != "0") add({"-b", rate});
  return words;
}

Result<Flow> read_flow(const BenchOptions& o, const std::string& output) {
  const Json document = Json::parse(output, nullptr, false);
  if (document.is_discarded() || !document.contains("end") || document.contains("error"))
    return Error{ExitCode::internal_error, "read what iperf3 -J says",
                 document.contains("error") ? document["error"].get<std::string>()
                                            : "it is no JSON with an end"};
  const Json& end = document["end"];
  Flow flow;
  for (const char* key : {"sum_received", "sum_received_bidir_reverse"}) {
    if (!end.contains(key)) continue;
    flow.bytes += end[key]["bytes"].get<double>();
    flow.seconds = end[key]["seconds"].get<double>();
  }
  if (flow.bytes == 0 &&
      end.contains(
          "sum")) {  // UDP before 3.13: what the sender counts, less what the receiver missed
    flow.bytes =
        end["sum"]["bytes"].get<double>() * (1 - end["sum"]["lost_percent"].get<double>() / 100);
    flow.seconds = end["sum"]["seconds"].get<double>();
  }
  if (o.omit_seconds > 0 &&
      flow.seconds > 0) {  // what flowed before -O's end was paid for and is not in the sums
    const double whole = flow.seconds + static_cast<double>(whole_seconds(o.omit_seconds));
    flow = {.bytes = flow.bytes * whole / flow.seconds, .seconds = whole};
  }
  return flow;
}

}  // namespace

Point iperf3_point(const BenchOptions& options, const Place& place, bool is_udp) {
  ForeignPair pair{
      .program = "iperf3",
      .remedy = "apt-get install iperf3",
      .receiver = {"iperf3", "-s", "-1", "-p", std::to_string(iperf3_port)},
      .sender = client_command(options, place, is_udp),
      .is_udp = false,
      .port = iperf3_port,
      .read = [&options](const std::string& output) { return read_flow(options, output); }};
  return {.name = is_udp ? "iperf3-udp" : "iperf3-tcp",
          .settings = {{"program", "iperf3"}, {"command", join(pair.sender, " ")}},
          .run =
              [&options, &place, pair](const RunMode& mode) {
                return run_foreign(options, place, pair, mode.is_counted);
              },
          .is_counted_apart = true};
}

}  // namespace onehop::bench
