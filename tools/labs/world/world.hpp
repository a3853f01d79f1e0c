// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// World: a whole transfer in virtual time from one seed. The real loops, the real transfer core,
// the real AEAD and the real law run over a VirtualLink; only the disk is a model, since what it
// does here is take time and check bytes.
//
//   PatternDisk ─▶ SenderLoop ─▶ WorldPort ═ VirtualLink ═ WorldPort ─▶ ReceiverLoop ─▶ PatternDisk
//                      ▲ RateLoop + law                                                  (checks)
//
// Each of the three that turn (sender, receiver, control) can be held back, as by a scheduler. One
// thread. Nothing reads a clock: run() moves time from event to event.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/protocol/file_volume.hpp"
#include "tools/labs/world/ends.hpp"
#include "tools/labs/world/pattern_disk.hpp"
#include "tools/labs/world/world_port.hpp"

namespace onehop::scenario {

using sim::PatternDisk;

struct WorldConfig {
  std::uint64_t seed = 1;
  /// By index on the wire; file_without_blocks: of a tree, and packed.
  std::vector<std::uint64_t> file_sizes{10'000'000};
  /// Files of a volume; the receiver is told of the later ones while data flows. 0: all in one.
  std::size_t volume_files = 0;
  VirtualLinkConfig forward{};   ///< data
  VirtualLinkConfig backward{};  ///< feedback
  std::size_t frame_bytes = 1472;
  std::uint64_t key_interval_packets = 1U << 12;
  std::uint64_t first_packet_number = 1;
  std::size_t sender_slots = 96;
  std::size_t receiver_slots = 128;
  BytesPerSecond disk_rate{};  ///< of the receiving disk; 0: takes no time
  Nanos tick = 1ms;            ///< of the control loop; 0: as the loop asks for
  std::string law = "safe-range";
  bool has_qcut = false;
  bool is_repair_lazy = false;
  /// Under lazy repair: the law as the program makes it, with loss on the air masked.
  bool has_loss_mask = false;
  bool is_path_proof_skipped = false;
  Instant last_block_at{};         ///< the source has the last block only then
  std::optional<RingShape> rings;  ///< AF_XDP's rings at both ends
  // Memory. A schedule of a tenth of a second needs little of it, and clearing it would cost more
  // than playing.
  std::size_t link_frames_max = 8192;  ///< frames in existence at once
  std::size_t in_flight_max = 1U << 16;
  std::size_t gap_ranges_max = 4096;
  transfer::RingSizes links{.blocks = 512, .file_messages = 1, .commands = 512};
};

/// Actor: who turns.
enum class Actor : std::uint8_t { sender, receiver, control };
inline constexpr std::size_t actors = 3;

/// WorldWatch sees each turn; `delay` is how late the one after it may come.
class WorldWatch {
 public:
  virtual ~WorldWatch() = default;
  virtual void before_turn(Actor actor, Instant now) = 0;
  virtual void after_turn(Actor actor, Instant now) = 0;
  [[nodiscard]] virtual Nanos delay(Actor actor) = 0;
  /// on_block: the disk has taken a whole block; `wrong_bytes` of it are not what was sent.
  virtual void on_block(const BlockRef& block, std::uint64_t wrong_bytes) = 0;
};

/// What a transfer ended with. is_finished: every block arrived, was checked, and the sender knows.
struct Outcome {
  bool is_finished = false;
  bool has_failed = false;  ///< an event that ends a session
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

  /// start proves the path both ways and lets data flow; run() plays up to `span` from now on or
  /// until the outcome.
  void start();
  const Outcome& run(Nanos span);
  [[nodiscard]] Instant now() const { return link_.now(); }
  [[nodiscard]] VirtualLink& link() { return link_; }
  [[nodiscard]] const Outcome& outcome() const { return outcome_; }
  [[nodiscard]] const protocol::Sender& sender() const { return ends_.sender.loop.sender(); }
  [[nodiscard]] const protocol::Receiver& receiver() const {
    return ends_.receiver.loop.receiver();
  }
  [[nodiscard]] Nanos receiver_srtt() const { return ends_.receiver.links.report.load().srtt; }
  [[nodiscard]] QueueTelemetry lower_queue() { return link_.lower_queue(0); }
  void set_disk_rate(BytesPerSecond rate) { disk_rate_ = rate; }
  void stall_disk_until(Instant until) { disk_free_at_ = until; }
  [[nodiscard]] BytesPerSecond disk_rate() const { return disk_rate_; }

  void set_watch(WorldWatch* watch) { watch_ = watch; }
  void set_source(link::FactSource* source) { ends_.rate->set_source(source); }
  /// hold_until keeps one of the three from turning.
  void hold_until(Actor actor, Instant until) {
    held_until_[static_cast<std::size_t>(actor)] = until;
  }
  /// follow_path tells both ends of the link as it is now.
  void follow_path(std::uint16_t mtu_bytes, bool is_up);
  [[nodiscard]] WorldPort& port(std::size_t end) {
    return end == 0 ? sender_port_ : receiver_port_;
  }
  [[nodiscard]] const law::Controller& law() const { return *ends_.law; }
  [[nodiscard]] RateGrant grant() const { return ends_.sender.links.grant.load(); }
  [[nodiscard]] PathReport sender_report() const { return ends_.sender.links.report.load(); }
  [[nodiscard]] const DataPathCounters& receiver_counters() const {
    return ends_.receiver.loop.counters();
  }
  [[nodiscard]] std::uint64_t bytes_total() const { return bytes_total_; }
  /// Volumes that the receiver was told of.
  [[nodiscard]] std::size_t volumes_told() const { return volumes_told_; }
  /// Blocks that the disk gave back to the receiving core so far, and their file bytes.
  [[nodiscard]] std::uint64_t blocks_given_back() const { return blocks_given_back_; }
  [[nodiscard]] std::uint64_t bytes_given_back() const { return bytes_given_back_; }

 private:
  void step(Instant until);
  [[nodiscard]] Instant due(Actor actor) const;
  void turn(Actor actor, Instant now);
  void tell_volumes();
  void feed_sender();
  void feed_receiver();
  void drain_receiver();
  void take_events();
  [[nodiscard]] bool next_block(BlockRef& block);
  [[nodiscard]] bool is_last_block() const;
  void skip_packed();

  WorldConfig config_;
  VirtualLink link_;
  WorldPort sender_port_, receiver_port_;
  PatternDisk source_, sink_;
  sim::Ends<WorldPort> ends_;
  std::vector<BlockRef> to_receiver_;  // given back by the disk, waiting for room in the ring
  std::uint64_t blocks_given_back_ = 0, bytes_given_back_ = 0;
  std::vector<BlockRef> on_disk_;  // full blocks waiting for the model disk, oldest first
  std::size_t on_disk_head_ = 0;
  std::deque<std::unique_ptr<protocol::FileVolume>> volumes_;  // not released, oldest first
  std::size_t files_told_ = 0, volumes_told_ = 1;
  std::uint32_t next_file_ = 0;
  std::uint64_t next_offset_ = 0;
  Instant tick_at_{}, disk_free_at_{};
  std::array<Instant, actors> held_until_{};
  WorldWatch* watch_ = nullptr;
  BytesPerSecond disk_rate_{};
  Outcome outcome_;
  std::uint64_t bytes_total_ = 0;
};

}  // namespace onehop::scenario
