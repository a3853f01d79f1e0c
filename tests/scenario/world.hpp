// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// World: a whole transfer in virtual time from one seed. The real loops, the real transfer core, the real AEAD and the
// real law run over a VirtualLink; only the disk is a model, since what it does here is take time and check bytes.
//
//   PatternDisk ─▶ SenderLoop ─▶ VirtualPort ═ VirtualLink ═ VirtualPort ─▶ ReceiverLoop ─▶ PatternDisk (checks)
//                      ▲ RateLoop + law
//
// One thread. Nothing reads a clock: run() moves time from event to event.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "control/law/controller.hpp"
#include "control/rate/rate_loop.hpp"
#include "engine/port/virtual_port.hpp"
#include "engine/run/receiver_loop.hpp"
#include "engine/run/sender_loop.hpp"
#include "tools/ns3/pattern_disk.hpp"

namespace onehop::scenario {

using sim::PatternDisk;

struct WorldConfig {
  std::uint64_t seed = 1;
  std::vector<std::uint64_t> file_sizes{10'000'000};
  VirtualLinkConfig forward{};             ///< data
  VirtualLinkConfig backward{};            ///< feedback
  std::size_t frame_bytes = 1472;
  std::uint64_t key_interval_packets = 1U << 12;
  std::uint64_t first_packet_number = 1;
  std::size_t sender_slots = 96;
  std::size_t receiver_slots = 128;
  BytesPerSecond disk_rate{};              ///< of the receiving disk; 0: takes no time
  Nanos tick = 1ms;                        ///< of the control loop
  std::string law = "safe-range";
  bool is_repair_lazy = false;
  bool is_path_proof_skipped = false;
};

/// What a transfer ended with. is_finished: every block arrived, was checked, and the sender knows.
struct Outcome {
  bool is_finished = false;
  bool has_failed = false;                 ///< an event that ends a session
  EventKind failure = EventKind::closed;
  Instant first_data_at{};
  Instant finished_at{};
  std::uint64_t bytes_checked = 0;
  std::uint64_t bytes_wrong = 0;
};

class World {
 public:
  explicit World(const WorldConfig& config);
  ~World();

  /// start proves the path both ways and lets data flow; run() plays up to `span` from now on or until the outcome.
  void start();
  const Outcome& run(Nanos span);
  [[nodiscard]] Instant now() const { return link_.now(); }
  [[nodiscard]] VirtualLink& link() { return link_; }
  [[nodiscard]] const Outcome& outcome() const { return outcome_; }
  [[nodiscard]] const transfer::Sender& sender() const { return sender_.sender(); }
  [[nodiscard]] const transfer::Receiver& receiver() const { return receiver_.receiver(); }
  [[nodiscard]] Nanos receiver_srtt() const { return receiver_side_.report.load().srtt; }
  [[nodiscard]] RateState rate_state() const { return state_.load(); }
  [[nodiscard]] QueueTelemetry lower_queue() { return link_.lower_queue(0); }
  void set_disk_rate(BytesPerSecond rate) { disk_rate_ = rate; }
  void stall_disk_until(Instant until) { disk_free_at_ = until; }

 private:
  struct Side {
    SpscRing<BlockRef> file_to_engine{512}, engine_to_file{512};
    SpscRing<Command> commands{512};
    SpscRing<Event> events{4096};
    Latest<PathReport> report;
    Latest<RateGrant> grant;
    [[nodiscard]] run::EngineLinks links() { return {file_to_engine, engine_to_file, commands, events, report, grant}; }
  };
  void step();
  void feed_sender();
  void drain_receiver();
  void take_events();
  [[nodiscard]] bool next_block(BlockRef& block);

  WorldConfig config_;
  VirtualLink link_;
  VirtualPort sender_port_, receiver_port_;
  Side sender_side_, receiver_side_;
  Latest<Limits> limits_;
  Latest<RateState> state_;
  std::unique_ptr<law::Controller> law_;
  std::unique_ptr<rate::RateLoop> rate_;
  PatternDisk source_, sink_;
  run::SenderLoop<VirtualPort> sender_;
  run::ReceiverLoop<VirtualPort> receiver_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<BlockRef> on_disk_;          // full blocks waiting for the model disk, oldest first
  std::size_t on_disk_head_ = 0;
  std::uint32_t next_file_ = 0;
  std::uint64_t next_offset_ = 0;
  bool has_ended_ = false;
  Instant sender_at_{}, receiver_at_{}, tick_at_{}, disk_free_at_{};
  BytesPerSecond disk_rate_{};
  int proofs_ = 0;
  Outcome outcome_;
  std::uint64_t bytes_total_ = 0;
};

}  // namespace onehop::scenario
