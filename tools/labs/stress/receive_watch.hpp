// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ReceiveWatch: what must hold of the receiving core, turn for turn, and of the blocks that the
// disk gets.
//
//   rx ring      what was taken is what has drained; the occupancy fits the ring; totals only grow
//   app buffer   drained + occupancy is between what the disk was given and what was accepted;
//                it fits its capacity
//   blocks       each is given once, whole, with the bytes that were sent
//   frames       none fails to open where the link damages none; none finds no room
//
// One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/labs/stress/broken.hpp"
#include "tools/labs/stress/schedule.hpp"
#include "tools/labs/world/world.hpp"

namespace onehop::stress {

class ReceiveWatch final : public scenario::PortWatch {
 public:
  ReceiveWatch(scenario::World& world, const Schedule& schedule, Broken& broken);

  void after_turn(Instant now);
  void on_block(Instant now, const BlockRef& block, std::uint64_t wrong_bytes);
  void on_commit(std::span<const std::byte>) override {}
  void on_receive(std::size_t frame_bytes) override;
  [[nodiscard]] const QueueTelemetry& ring() const { return ring_; }
  [[nodiscard]] const QueueTelemetry& buffer() const { return buffer_; }

 private:
  void check_ring(Instant now);
  void check_buffer(Instant now);
  void check_frames(Instant now);

  scenario::World& world_;
  const Schedule& schedule_;
  Broken& broken_;
  const Bytes wire_overhead_;
  Bytes taken_{};
  QueueTelemetry ring_, buffer_;
  std::uint64_t bytes_to_disk_ = 0;
  std::vector<std::size_t> first_block_;  // by file
  std::vector<bool> has_come_;            // by block
};

}  // namespace onehop::stress
