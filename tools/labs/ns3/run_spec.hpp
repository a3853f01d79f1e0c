// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RunSpec and RunResult: one simulation, as plain values. They cross from the C++20 files
// (scenario, tables) to the C++17 files (ns-3) and back, so nothing here needs either.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace onehop::sim {

/// LinkSpec: the radio, the queues below IP, and where frames are lost.
struct LinkSpec {
  std::string topology = "pairs";  ///< "pairs": ad hoc, node 2i sends to 2i+1; "ap": node 0 is the
                                   ///< router, stations 1..n
  std::string standard = "ax";     ///< "ax" or "ac"
  std::uint32_t pairs = 1;         ///< pairs, or stations of an AP
  std::uint32_t width_mhz = 160;
  std::uint32_t mcs = 11;
  std::uint32_t streams = 2;
  std::uint32_t guard_ns = 800;
  std::uint32_t ampdu_bytes = 65535;
  std::uint32_t block_ack = 64;            ///< MPDUs per Block Ack window
  std::vector<std::uint32_t> station_mcs;  ///< "ap": by station; empty: `mcs` for all
  std::vector<std::uint32_t> mcs_trace;    ///< MCS one after the other, repeated; empty: steady
  double mcs_period_s = 0.5;
  /// "pairs": "constant" (`mcs`) or "ideal", ns-3's: the fastest that the newest acknowledgement's
  /// signal carries almost without errors
  std::string rate_control = "constant";
  double rssi_dbm = 0;     ///< the signal at every receiver; 0: as distance says
  double walk_mps = 0;     ///< one pair: how fast its receiver walks away; 0: all stand still
  double walk_from_m = 1;  ///< from where
  std::uint32_t fading_paths = 0;  ///< independent paths whose mean power walkers see; 0: no fading
  double phy_loss = 0;  ///< per MPDU at the receiver's PHY; the MAC repeats it
  double ip_loss = 0;   ///< per packet above the receiver's MAC; nobody below us repeats it
  /// How often the MAC sends a frame at the most; 0: ns-3's 7, after which the receiver may wait
  /// for ever for the number that is missing
  std::uint32_t mac_tries = 0;
  double jitter_ms = 0;        ///< mean time that a receiver holds a frame above its MAC; 0: none
  double jitter_draw_ms = 20;  ///< from one draw of it to the next
  double drought_ms = 0;       ///< how long others have the medium at a time; 0: never
  double drought_gap_ms = 1000;  ///< mean time from the end of one drought to the next
  std::uint32_t mac_queue_frames = 500;
  std::uint32_t station_queue_frames = 0;  ///< "ap": the stations' MAC queue; 0: as the router's
  /// "fq_codel" (ns-3's default), "fifo", "pfifo_fast" (three bands by priority: what phones have),
  /// "none".
  std::string qdisc = "fq_codel";
  std::uint32_t qdisc_frames = 1000;  ///< of "fifo" and "pfifo_fast"
  bool counts_stations = false;       ///< senders know how many links are active on the channel
  bool hides_senders = false;   ///< "pairs": even nodes do not hear each other; "ap": stations
  std::uint32_t rts_bytes = 0;  ///< frames above this ask first (RTS/CTS); 0: none does
  /// Of the MAC queue: "fcfs" (ns-3's default) or "round-robin" by station
  std::string scheduler = "fcfs";
};

/// FlowSpec: one flow from one node to another.
struct FlowSpec {
  std::string name;
  std::string kind = "onehop";     ///< "onehop", "udp", "tcp", "ping", "control" (ping over TCP)
  std::string law = "safe-range";  ///< onehop
  std::string target = "under";    ///< onehop: where in the safe range
  bool has_qcut = false;           ///< onehop: the law inside QCut's gate
  std::string variant = "cubic";   ///< tcp: "cubic", "newreno", "bbr", "vegas", "c4"
  std::uint32_t pair = 0;          ///< "pairs": which; "ap": station - 1
  bool is_reverse = false;         ///< from the odd node, or from the station up to the router
  double rate_mbps = 0;            ///< offered load; 0: as much as goes
  std::uint64_t bytes = 0;         ///< 0: without end
  double start_s = 0;
  double stop_s = 0;           ///< 0: at the end
  double interval_ms = 10;     ///< ping, control
  bool is_primed = true;       ///< the Block Ack agreements are there before it starts; without,
                               ///< its first frames wait for them, which its round trip shows
  bool is_background = false;  ///< marked CS1, access category BK
  double tick_ms = 0;          ///< onehop: of the control loop; 0: as it wishes
  double feedback_ms = 0;      ///< onehop: distance of the peer's reports; 0: what the law wishes
  bool has_digests = false;    ///< onehop: digest each block at both ends, too
  std::string facts = "all";   ///< onehop: what the link tells: "all", "queue" (and what fills it),
                               ///< "medium" alone, "none"
  double facts_age_ms = 0;     ///< onehop: how old a reading is when it is told
  double facts_loss = 0;       ///< onehop: share of the readings that are never told
  /// Onehop: "sees" what stands below it and pushes back, or is "blind"
  std::string port = "sees";
  /// Onehop: datagrams of 64 KB in IP fragments: "none", until the path loses too many
  /// ("switched", what the program does), or whatever it loses ("kept")
  std::string fragments = "none";
  [[nodiscard]] bool is_probe() const { return kind == "ping" || kind == "control"; }
};

struct RunSpec {
  LinkSpec link;
  std::vector<FlowSpec> flows;
  double warm_up_s = 0.5;  ///< from the start of the flows
  double measure_s = 1.0;
  bool stops_when_done = false;  ///< end as soon as every flow with `bytes` is complete
  double sample_ms = 0;          ///< > 0: series of rate, backlog and target
  /// UDP payload and TCP segment of a full packet: 187 of ours carry a block exactly
  std::uint32_t payload_bytes = 1446;
  std::uint32_t tcp_buffer_bytes = 16'000'000;
  std::uint32_t tcp_min_rto_ms = 200;  ///< Linux's; ns-3's is 1 s
  /// Linux's; ns-3's is 200, as long as Linux's least RTO: each lone segment times out
  std::uint32_t tcp_delayed_ack_ms = 40;
  bool has_tcp_timestamps = false;  ///< ns-3's are of 1 ms, coarser than the round trip here
  std::uint64_t seed = 1;
};

/// Spread: of a delay, in microseconds.
struct Spread {
  double mean = 0, p50 = 0, p95 = 0, p99 = 0, max = 0;
  std::uint64_t count = 0;  ///< 0: not measured
};

struct Sample {
  double at_s = 0;
  double goodput_mbps = 0;
  double backlog_kb = 0, target_kb = 0, rate_mbps = 0;
  double phy_mbps = 0;  ///< of the newest data frame; 0: none yet
};

struct FlowResult {
  std::string name;
  double goodput_mbps = 0;  ///< file or payload bytes at the receiving application, in the window
  Spread delay;  ///< one way: from leaving our pacer (IP output) to the receiving application
  Spread wait;   ///< what a byte offered at `rate_mbps` waited before the pacer
  Spread rtt;    ///< ping, control
  std::uint64_t bytes_delivered = 0;  ///< over the whole run
  std::uint64_t bytes_wrong = 0;
  bool is_complete = false;
  double complete_s = 0;  ///< from the flow's start
  double retransmitted_share = 0;
  double lost_share = 0;
  double airtime_share = 0;  ///< of the sender's PSDUs to that receiver, in the window
  std::uint64_t feedback_frames = 0;
  std::string failure;  ///< onehop: why the session ended; empty: it did not
  std::vector<Sample> series;
};

struct RunResult {
  std::vector<FlowResult> flows;
  Spread delay;                 ///< of all flows' data packets together
  double busy_share = 0;        ///< node 0's PHY: TX + RX + CCA busy, in the window
  double aggregate_frames = 0;  ///< mean MPDUs per data PSDU
  std::uint64_t mac_drops = 0;
  std::uint64_t trace_hash = 0;  ///< over time and size of every delivery
  double cpu_s = 0;
};

/// simulate runs one simulation from its start to its end. ns-3's simulator is one per process, and
/// so is this.
[[nodiscard]] RunResult simulate(const RunSpec& spec);

}  // namespace onehop::sim
