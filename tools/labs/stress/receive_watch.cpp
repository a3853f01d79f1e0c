// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/stress/receive_watch.hpp"

#include <fmt/format.h>

#include "engine/protocol/credit.hpp"

namespace onehop::stress {

ReceiveWatch::ReceiveWatch(scenario::World& world, const Schedule& schedule, Broken& broken)
    : world_{world},
      schedule_{schedule},
      broken_{broken},
      wire_overhead_{world.port(1).info().wire_overhead} {
  std::size_t blocks = 0;
  for (const std::uint64_t size : schedule.world.file_sizes) {
    first_block_.push_back(blocks);
    if (size != file_without_blocks) blocks += static_cast<std::size_t>(blocks_of(size));
  }
  has_come_.resize(blocks);
}

void ReceiveWatch::on_receive(std::size_t frame_bytes) {
  taken_ += Bytes{static_cast<std::int64_t>(frame_bytes)} + wire_overhead_;
}

void ReceiveWatch::after_turn(Instant now) {
  check_ring(now);
  check_buffer(now);
  check_frames(now);
}

void ReceiveWatch::check_ring(Instant now) {
  const QueueTelemetry ring = world_.port(1).rx_ring(now);
  if (taken_ != ring.drained_total)
    broken_.say(now, fmt::format("rx ring: {} bytes were taken and {} have drained", taken_.count,
                                 ring.drained_total.count));
  if (ring.occupancy < Bytes{0} || ring.occupancy > ring.capacity)
    broken_.say(now, fmt::format("rx ring: an occupancy of {} in a capacity of {}",
                                 ring.occupancy.count, ring.capacity.count));
  if (ring.refused_total < ring_.refused_total)
    broken_.say(now, "rx ring: the refused frames became fewer");
  ring_ = ring;
  for (std::size_t end = 0; end < 2; ++end) {
    scenario::RingPort* const rings = world_.port(end).rings();
    if (rings == nullptr) continue;
    rings->audit();
    if (!rings->complaint().empty())
      broken_.say(now, fmt::format("rings of end {}: {}", end, rings->complaint()));
  }
}

void ReceiveWatch::check_buffer(Instant now) {
  const QueueTelemetry buffer = world_.receiver().app_buffer(now);
  const auto accepted = static_cast<std::int64_t>(world_.receiver().totals().bytes_accepted);
  const auto given_back = static_cast<std::int64_t>(world_.bytes_given_back());
  const std::int64_t whole = buffer.drained_total.count + buffer.occupancy.count;
  if (whole > accepted || whole < static_cast<std::int64_t>(bytes_to_disk_))
    broken_.say(
        now, fmt::format(
                 "app buffer: drained {} + occupancy {}, with {} accepted and {} given to the disk",
                 buffer.drained_total.count, buffer.occupancy.count, accepted, bytes_to_disk_));
  if (buffer.drained_total < buffer_.drained_total || buffer.drained_total.count > given_back)
    broken_.say(now,
                fmt::format("app buffer: drained {} after {}, with {} given back",
                            buffer.drained_total.count, buffer_.drained_total.count, given_back));
  if (buffer.occupancy < Bytes{0} || buffer.occupancy > buffer.capacity)
    broken_.say(now, fmt::format("app buffer: an occupancy of {} in a capacity of {}",
                                 buffer.occupancy.count, buffer.capacity.count));
  buffer_ = buffer;
}

void ReceiveWatch::check_frames(Instant now) {
  const bool is_damaged = (schedule_.kinds & bit_of(Fault::disorder)) != 0;
  // A late frame and its shorter repeats overlap in part
  const bool is_recut = (schedule_.kinds & bit_of(Fault::mtu)) != 0;
  const DataPathCounters& counters = world_.receiver_counters();
  if (!is_damaged && counters.auth_failures_total + counters.replays_total > 0)
    broken_.say(
        now,
        fmt::format(
            "{} frames failed to open and {} came twice on a link that damages and doubles none",
            counters.auth_failures_total, counters.replays_total));
  if (!is_damaged && !is_recut && world_.receiver().totals().no_room > 0)
    broken_.say(now, "a frame found no room: the sender went beyond the buffers");
}

void ReceiveWatch::on_block(Instant now, const BlockRef& block, std::uint64_t wrong_bytes) {
  const auto& sizes = schedule_.world.file_sizes;
  if (block.file >= sizes.size() || sizes[block.file] == file_without_blocks ||
      (block.offset != 0 && block.offset >= sizes[block.file]))
    return broken_.say(
        now, fmt::format("a block of file {} at {}, which there is not", block.file, block.offset));
  if (wrong_bytes > 0)
    broken_.say(
        now, fmt::format("{} wrong bytes in file {} at {}", wrong_bytes, block.file, block.offset));
  if (block.length != block_length_at(sizes[block.file], block.offset))
    broken_.say(now, fmt::format("a block of {} bytes of file {} at {}", block.length, block.file,
                                 block.offset));
  const std::size_t number =
      first_block_[block.file] + static_cast<std::size_t>(block.offset / block_bytes);
  if (has_come_[number])
    broken_.say(now,
                fmt::format("the block of file {} at {} came twice", block.file, block.offset));
  has_come_[number] = true;
  bytes_to_disk_ += block.length;
}

}  // namespace onehop::stress
