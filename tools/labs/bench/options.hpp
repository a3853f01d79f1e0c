// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The command line of `onehop bench`. A list sweeps: every combination is one point, and each round
// runs all points. Letters are iperf3's where iperf3 has the thing; one that means nothing here is
// refused with the reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace CLI {
class App;
}

namespace onehop::bench {

/// Part: `serve` is the receiving end of a loop between two hosts.
enum class Part : std::uint8_t { loop, serve, port, aead, digest, file, law, ring };
[[nodiscard]] const char* name_of(Part part) noexcept;
[[nodiscard]] constexpr bool is_session(Part part) {
  return part == Part::loop || part == Part::serve;
}
[[nodiscard]] constexpr bool has_link(Part part) { return is_session(part) || part == Part::port; }

struct BenchOptions {
  Part part = Part::loop;

  // Sweeps.
  std::vector<std::string> io{"udp"};    ///< udp, afxdp, afxdp:zero-copy|copy|skb
  std::vector<std::size_t> frame_bytes;  ///< UDP payload of a full frame; 0: as the MTU allows
  std::vector<std::uint32_t> burst_frames{44};  ///< port: frames per doorbell
  std::vector<std::string> poll{"adaptive"};
  std::vector<std::string> digest,
      aead;  ///< lists that are empty get the part's default in check_options()
  std::vector<std::string> rate{"flood"};
  std::vector<std::string> file_io{"auto"};
  std::vector<std::string> law;

  // What a run is.
  std::string profile = "unshaped";
  std::string eal;    ///< of --io dpdk; {iface} stands for the end's interface in the lab
  int mtu_bytes = 0;  ///< of the lab link; 0: as the profile has it
  std::string source = "memory", sink = "memory";
  std::string folder = "/dev/shm";
  double seconds = 2;       ///< -t
  std::string amount;       ///< -n
  std::uint64_t bytes = 0;  ///< of -n; 0: by time
  double omit_seconds = 0, interval_seconds = 0;
  int parallel = 1;
  bool is_reverse = false, is_both_ways = false;
  std::string affinity;  ///< -A
  std::optional<int> sender_cpu, receiver_cpu;
  /// port: in flight at most; 0: no bound. 1000 (netdev_max_backlog) and more: a veth drops whole
  /// windows. Fewer: naps show.
  std::uint32_t window_frames = 512;
  bool has_parts = false;            ///< loop: measure the parts in the same rounds
  std::string to;                    ///< loop: the host that runs `bench serve`; empty: in a lab
  std::string listen;                ///< serve
  std::string interface, code_file;  ///< between two hosts

  // What is told of it.
  int rounds = 5;
  std::string baseline;
  std::string peers;  ///< folder of tools/measure/quic-peers; empty: the user's cache
  bool is_json = false, is_document = false, is_quiet = false;
};

/// add_bench_command puts `bench` and what is below it into `app`, and returns it. `options` must
/// live as long.
CLI::App* add_bench_command(CLI::App& app, BenchOptions& options);

/// check_options reads what the parser could not (amounts, rates, cores) and refuses what makes no
/// sense together.
[[nodiscard]] Result<void> check_options(BenchOptions& options);

/// is_quic: the baseline is one of the peers of tools/measure/quic-peers.
[[nodiscard]] bool is_quic(const std::string& baseline);

/// parse_amount reads iperf3's "512M", "2G", "1000000": bytes, with binary K, M, G, T.
[[nodiscard]] Result<std::uint64_t> parse_amount(const std::string& text);

/// IoChoice: "afxdp:copy" taken apart.
struct IoChoice {
  std::string io, mode;
};
[[nodiscard]] Result<IoChoice> parse_io(const std::string& text);

}  // namespace onehop::bench
