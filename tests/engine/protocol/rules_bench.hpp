// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RulesBench: a Sender with blocks of its own and a hand-written peer.
#pragma once

#include <vector>

#include "engine/protocol/sender.hpp"

namespace onehop::protocol {

struct RulesBench {
  static constexpr std::size_t body_max = 1428;

  explicit RulesBench(SenderParams params = {}) : memory(block_bytes), sender{filled(params)} {}

  static SenderParams filled(SenderParams params) {
    if (params.body_bytes_max == 0) params.body_bytes_max = body_max;
    if (params.block_slots == 0) params.block_slots = 8;
    return params;
  }

  /// lend gives a block of `length` bytes; all share one memory, since nobody looks at the bytes
  /// here.
  void lend(std::uint32_t slot, std::uint32_t length = block_bytes, std::uint32_t file = 0,
            std::uint64_t offset = 0) {
    sender.add_block(
        {.data = memory.data(), .offset = offset, .file = file, .length = length, .slot = slot});
  }
  void start() {
    sender.start(now);
    credit = 64ULL * block_bytes;
    (void)tell(0, 0, {}, false);
  }
  /// tell applies one feedback frame.
  wire::Violation tell(std::uint64_t from, std::uint64_t largest,
                       const std::vector<wire::PacketRange>& missing = {},
                       bool has_received = true) {
    wire::Feedback feedback;
    feedback.sequence = ++sequence;
    feedback.has_received = has_received;
    feedback.from = from;
    feedback.largest = largest;
    feedback.credit_bytes_total = credit;
    for (const wire::PacketRange& range : missing) feedback.missing[feedback.range_count++] = range;
    return sender.on_feedback(now, feedback);
  }
  /// send plans up to `most` data frames; pings are answered by nobody and not returned.
  std::vector<FramePlan> send(std::size_t most = 100'000) {
    std::vector<FramePlan> plans;
    FramePlan plan;
    while (plans.size() < most && sender.next(now, true, plan))
      if (plan.header.type == wire::FrameType::data) plans.push_back(plan);
    return plans;
  }
  /// answer_pings gives the path a round trip of `rtt`.
  void answer_pings(Nanos rtt, int count = 3) {
    for (int i = 0; i < count; ++i) {
      FramePlan plan;
      now += 1s;
      if (!sender.next(now, false, plan)) continue;
      now += rtt;
      sender.on_pong(now, {.id = plan.ping.id});
    }
  }

  std::vector<std::byte> memory;
  Sender sender;
  Instant now{100s};
  std::uint64_t sequence = 0, credit = 0;
};

}  // namespace onehop::protocol
