// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// QUIC as a baseline: the programs over quinn and s2n-quic that tools/measure/quic-peers builds.
// One stream of static memory to a receiver that counts and drops it, AES-128-GCM, frames that fill
// the link's MTU.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "tools/labs/bench/ends/foreign.hpp"

namespace onehop::bench {

namespace {

constexpr int quic_port = 4433;
constexpr int mtu_max = std::numeric_limits<std::uint16_t>::max();

Result<Flow> read_flow(const std::string& output) {
  const Json line = Json::parse(output, nullptr, false);
  if (line.is_discarded() || !line.contains("bytes") || !line.contains("seconds"))
    return Error{ExitCode::internal_error, "read what the QUIC sender says",
                 "it is not its line of JSON; its own errors are above"};
  return Flow{.bytes = line["bytes"].get<double>(), .seconds = line["seconds"].get<double>()};
}

std::string folder_of(const BenchOptions& o) {
  if (!o.peers.empty()) return o.peers;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return std::string{cache} + "/onehop/peers";
  const char* home = std::getenv("HOME");
  return std::string{home != nullptr ? home : "/root"} + "/.cache/onehop/peers";
}

}  // namespace

Result<Point> quic_point(const BenchOptions& options, const Place& place) {
  const std::string folder = folder_of(options), program = folder + "/peer-" + options.baseline;
  for (const std::string& file : {program, folder + "/cert.pem", folder + "/key.pem"})
    if (::access(file.c_str(), R_OK) != 0)
      return errno_error(ExitCode::io_unavailable,
                         "take --baseline " + options.baseline + ": read " + file,
                         "Build it with tools/measure/quic-peers " + options.baseline +
                             ", or name the folder that has it with --peers");
  const std::string address =
      fmt::format("{}:{}", receiving_address(options.is_reverse), quic_port);
  const std::string mtu = std::to_string(std::min(place.mtu_bytes, mtu_max));
  ForeignPair pair{.program = options.baseline,
                   .remedy = "Its own error is above",
                   .receiver = {program, "recv", address, "--folder", folder, "--mtu", mtu},
                   .sender = {program, "send", address, "--folder", folder, "--mtu", mtu},
                   .is_udp = true,
                   .port = quic_port,
                   .read = read_flow};
  if (options.bytes != 0)
    pair.sender.insert(pair.sender.end(), {"--bytes", std::to_string(options.bytes)});
  else
    pair.sender.insert(pair.sender.end(),
                       {"--seconds", fmt::format("{}", options.seconds + options.omit_seconds)});
  return Point{.name = options.baseline,
               .settings = {{"program", program}, {"command", join(pair.sender, " ")}},
               .run =
                   [&options, &place, pair](const RunMode& mode) {
                     return run_foreign(options, place, pair, mode.is_counted);
                   },
               .is_counted_apart = true};
}

}  // namespace onehop::bench
