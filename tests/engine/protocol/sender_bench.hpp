// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SenderBench: a Sender, its blocks, and what it sent. Feedback is made by hand. For the Sender's
// own tests.
#pragma once

#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include "engine/protocol/sender.hpp"

namespace onehop::protocol {

struct SenderBench {
  explicit SenderBench(SenderParams params = {.body_bytes_max = 1400, .block_slots = 8})
      : sender{params} {
    memory.resize(params.block_slots * block_bytes);
    slots = params.block_slots;
    for (std::uint32_t i = 0; i < slots; ++i)
      free.push_back(static_cast<std::uint32_t>(slots - 1) - i);
    sender.start(now);
  }
  void add(std::uint32_t length = block_bytes) {
    sender.add_block({.data = memory.data() + std::size_t{free.back()} * block_bytes,
                      .file = file++,
                      .length = length,
                      .slot = free.back()});
    free.pop_back();
  }
  /// send_data sends up to `count` data frames (PINGs beside) and returns their plans.
  std::vector<FramePlan> send_data(std::size_t count) {
    std::vector<FramePlan> plans;
    FramePlan plan;
    while (plans.size() < count && sender.next(now, true, plan)) {
      next_number = plan.header.packet_number + 1;
      if (plan.header.type == wire::FrameType::data)
        plans.push_back(plan);
      else
        pings.push_back(plan);
    }
    return plans;
  }
  wire::Violation hear(std::uint64_t from, std::uint64_t largest,
                       std::vector<wire::PacketRange> missing = {}) {
    feedback.sequence = ++sequence;
    feedback.has_received = true;
    feedback.from = from;
    feedback.largest = largest;
    feedback.credit_bytes_total = credit;
    feedback.range_count = static_cast<std::uint32_t>(missing.size());
    std::copy(missing.begin(), missing.end(), feedback.missing.begin());
    return sender.on_feedback(now, feedback);
  }
  void grant(std::uint64_t bytes) {
    feedback = {};
    feedback.sequence = ++sequence;
    feedback.credit_bytes_total = credit = bytes;
    REQUIRE(sender.on_feedback(now, feedback) == wire::Violation::none);
  }
  void answer_ping() { sender.on_pong(now, {.id = pings.back().ping.id}); }
  Sender sender;
  std::vector<std::byte> memory;
  std::size_t slots = 0;
  std::vector<std::uint32_t> free;
  std::vector<FramePlan> pings;
  wire::Feedback feedback;
  Instant now{1s};
  std::uint64_t sequence = 0, credit = 0, next_number = 1;
  std::uint32_t file = 0;
};

inline std::uint64_t number_of(const FramePlan& plan) { return plan.header.packet_number; }

inline constexpr std::uint64_t plenty = std::uint64_t{1} << 40;  ///< of credit

}  // namespace onehop::protocol
