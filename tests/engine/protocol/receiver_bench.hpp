// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ReceiverBench: a Receiver with its buffers, and frames made by hand. For the Receiver's own
// tests.
#pragma once

#include <catch2/catch.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/protocol/receiver.hpp"

namespace onehop::protocol {

struct ReceiverBench {
  using Verdict = Placement::Verdict;

  explicit ReceiverBench(std::vector<std::uint64_t> file_sizes, std::size_t slots = 4,
                         std::size_t gaps_max = 4096)
      : sizes{std::move(file_sizes)},
        memory(slots * block_bytes),
        receiver{{.block_slots = slots,
                  .body_bytes_max = 1400,
                  .file_sizes = sizes,
                  .gap_ranges_max = gaps_max}} {
    for (std::uint32_t i = 0; i < slots; ++i)
      receiver.add_free({.data = memory.data() + i * block_bytes, .slot = i});
  }
  static wire::FrameHeader frame(std::uint64_t number, std::uint64_t below, std::uint32_t file,
                                 std::uint64_t offset) {
    return {.type = wire::FrameType::data,
            .file = file,
            .packet_number = number,
            .settled = below,
            .offset = offset};
  }
  /// data places and accepts one frame under the next number.
  Verdict data(std::uint32_t file, std::uint64_t offset, std::size_t bytes) {
    return data_as(next_number++, file, offset, bytes);
  }
  Verdict data_as(std::uint64_t number, std::uint32_t file, std::uint64_t offset,
                  std::size_t bytes) {
    const auto header = frame(number, settled, file, offset);
    const Placement placement = receiver.place(header, bytes);
    if (placement.verdict == Verdict::fresh || placement.verdict == Verdict::duplicate)
      receiver.accept(now, header, bytes, placement, false);
    return placement.verdict;
  }
  void ping_as(std::uint64_t number, std::uint32_t feedback_interval_us = 0) {
    const wire::FrameHeader header{
        .type = wire::FrameType::ping, .packet_number = number, .settled = settled};
    receiver.on_ping(now, header, {.id = 7, .feedback_interval_us = feedback_interval_us}, 100,
                     false);
  }
  /// report collects the frames of the report that is due.
  std::vector<wire::Feedback> report() {
    std::vector<wire::Feedback> frames;
    wire::Feedback frame;
    while (receiver.next_feedback(now, frame)) frames.push_back(frame);
    return frames;
  }
  wire::Feedback one_report() {
    receiver.record(now,
                    {.type = wire::FrameType::pong,
                     .is_nack_requested = true,
                     .packet_number = next_number - 1,
                     .settled = std::min(settled, next_number - 1)},
                    false);
    REQUIRE(receiver.tick(now));
    const auto frames = report();
    REQUIRE(frames.size() == 1);
    return frames[0];
  }

  std::vector<std::uint64_t> sizes;
  std::vector<std::byte> memory;
  Receiver receiver;
  Instant now{1s};
  std::uint64_t next_number = 1, settled = 1;
};

}  // namespace onehop::protocol
