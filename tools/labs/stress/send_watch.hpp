// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SendWatch: what must hold of the sending core, turn for turn, by accounts of its own: it sees the
// frames that are handed to the port, and the grant and the credit that were there before them.
//
//   telemetry   accepted = drained + occupancy, totals only grow, refused frames were never
//               accepted twice
//   grant       data leaves only while the token bucket and the backlog limit have room, one
//               frame beyond at most
//   credit      a first copy starts only below the reported credit; first copies go in order
//
// One thread.
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/path.hpp"
#include "tools/labs/stress/broken.hpp"
#include "tools/labs/world/world.hpp"

namespace onehop::stress {

class SendWatch final : public scenario::PortWatch {
 public:
  SendWatch(scenario::World& world, const scenario::WorldConfig& config, Broken& broken);

  void before_turn(Instant now);
  void after_turn(Instant now);
  void on_commit(std::span<const std::byte> frame) override;
  void on_receive(std::size_t) override {}

  [[nodiscard]] const QueueTelemetry& queue() const { return queue_; }

 private:
  void check_telemetry(Instant now);
  void check_grant(Instant now);
  void check_credit_told(Instant now);
  void on_data(const wire::FrameHeader& header, std::uint32_t length);

  scenario::World& world_;
  const scenario::WorldConfig& config_;
  Broken& broken_;
  const Bytes wire_overhead_, wire_frame_;

  // This turn.
  Instant now_{};
  RateGrant grant_;
  Bytes occupancy_before_{};
  Bytes data_sent_{}, ping_sent_{};

  // All turns.
  QueueTelemetry queue_;
  Bytes accepted_{};
  double tokens_ = 0;
  double depth_ = 0, rate_ = 0;
  Instant filled_at_{};
  bool has_turned_ = false;
  std::uint64_t credit_told_ = 0, ring_room_ = 0;
  // padding: what the blocks whose last frame was sent lack to whole ones, as credit counts it.
  std::uint64_t cost_started_ = 0, padding_started_ = 0;
  std::uint32_t file_ = 0;  // where the next first copy begins
  std::uint64_t offset_ = 0;
};

}  // namespace onehop::stress
