// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LossyLink: both ends of the protocol back to back over a link of this test's own, without AEAD
// and without loops.
//
//   Sender ─▶ wire header ─▶ loss, reordering, duplication, MTU ─▶ Receiver
//      ▲──────────────────── feedback (encoded, lossy) ────────────────┘
//
// Time moves in steps. Everything follows from the seed. A frame's body is copied, so a buffer that
// the sender reuses too early shows as wrong bytes.
#pragma once

#include <cstring>
#include <queue>
#include <random>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/protocol/credit.hpp"
#include "engine/protocol/receiver.hpp"
#include "engine/protocol/sender.hpp"

namespace onehop::protocol {

struct LossyLinkConfig {
  std::uint64_t seed = 1;
  std::vector<std::uint64_t> sizes;
  double loss = 0, feedback_loss = 0, duplicate = 0, reorder = 0;
  Nanos delay = 500us, reorder_delay = 3ms, step = 100us;
  std::size_t frames_per_step = 20;
  std::size_t body_max = 1428;
  std::size_t slots = 24;
  std::uint64_t first_packet_number = 1;
  std::size_t in_flight_max = 1U << 16;
  bool is_body_checked = true;  ///< false: bodies are neither made nor compared (long runs)
};

class LossyLink {
 public:
  explicit LossyLink(const LossyLinkConfig& c)
      : config{c},
        random{c.seed},
        source(c.slots * block_bytes),
        sink(c.slots * block_bytes),
        sender{{.body_bytes_max = c.body_max,
                .block_slots = c.slots,
                .in_flight_max = c.in_flight_max,
                .first_packet_number = c.first_packet_number,
                .skip_seed = c.seed}},
        receiver{
            {.block_slots = c.slots, .body_bytes_max = c.body_max, .file_sizes = config.sizes}} {
    for (std::uint32_t slot = 0; slot < c.slots; ++slot) {
      free_slots.push_back(slot);
      receiver.add_free({.data = sink.data() + std::size_t{slot} * block_bytes, .slot = slot});
    }
    receiver.set_rx_ring({.capacity = mib(4), .scope = QueueScope::own_ring});
    sender.start(now);
  }

  void step() {
    feed();
    now += config.step;
    deliver();
    sender.tick(now, Bytes{0});
    FramePlan plan;
    for (std::size_t i = 0; i < config.frames_per_step && sender.next(now, true, plan); ++i)
      transmit(plan);
    if (wire::Pong pong; receiver.pop_pong(now, pong) && !happens(config.feedback_loss))
      sender.on_pong(now, pong);
    receiver.set_srtt(2 * config.delay);
    if (receiver.tick(now)) report();
    drain();
  }
  [[nodiscard]] bool is_done() const {
    return sender.is_all_arrived() && receiver.is_complete() && blocks_checked == blocks_fed;
  }

  std::byte byte_at(std::uint32_t file, std::uint64_t offset) const {
    return static_cast<std::byte>((offset * 0x9E3779B97F4A7C15ULL + file * 77 + config.seed) >> 29);
  }

  LossyLinkConfig config;
  std::mt19937_64 random;
  std::vector<std::byte> source, sink;
  Sender sender;
  Receiver receiver;
  Instant now{1000s};
  wire::Violation violation = wire::Violation::none;
  std::uint64_t wrong_bytes = 0, blocks_fed = 0, blocks_checked = 0, frames = 0, freed = 0;
  std::size_t ranges_max = 0, in_flight_max = 0;
  std::size_t mtu_body = ~std::size_t{0};  ///< larger bodies vanish on the link

 private:
  struct Flight {
    Instant at;
    std::uint64_t order;
    wire::FrameHeader header;
    std::vector<std::byte> body;
    std::size_t length;
    wire::Ping ping;
    bool operator<(const Flight& other) const {
      return std::tie(at, order) > std::tie(other.at, other.order);
    }
  };

  bool happens(double p) { return p > 0 && std::uniform_real_distribution<>{0, 1}(random) < p; }

  void feed() {
    while (!free_slots.empty() && next_file < config.sizes.size()) {
      BlockRef block{.offset = next_offset, .file = next_file, .slot = free_slots.back()};
      free_slots.pop_back();
      block.data = source.data() + std::size_t{block.slot} * block_bytes;
      block.length = block_length_at(config.sizes[next_file], next_offset);
      if (config.is_body_checked)
        for (std::uint32_t i = 0; i < block.length; ++i)
          block.data[i] = byte_at(block.file, block.offset + i);
      sender.add_block(block);
      ++blocks_fed;
      next_offset += block_bytes;
      if (next_offset >= config.sizes[next_file]) ++next_file, next_offset = 0;
      if (next_file == config.sizes.size()) sender.end_of_files();
    }
    for (BlockRef block; sender.pop_sent(block);) {
    }
    for (BlockRef block; sender.pop_freed(block); ++freed) {
      if (config.is_body_checked) std::memset(block.data, 0xEE, block_bytes);
      free_slots.push_back(block.slot);
    }
  }

  void transmit(const FramePlan& plan) {
    ++frames;
    in_flight_max = std::max(in_flight_max, sender.in_flight());
    if (plan.body_bytes > mtu_body || happens(config.loss)) return;
    const int copies = happens(config.duplicate) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      Flight flight{now + config.delay + (happens(config.reorder) ? config.reorder_delay : 0ns),
                    ++order,
                    plan.header,
                    {},
                    plan.body_bytes,
                    plan.ping};
      if (config.is_body_checked) flight.body.assign(plan.body.begin(), plan.body.end());
      flights.push(std::move(flight));
    }
  }

  void deliver() {
    for (; !flights.empty() && flights.top().at <= now; flights.pop()) {
      const Flight& flight = flights.top();
      // The AEAD's replay window stands in front of the Receiver in the loop; here repeats reach
      // it, which is harsher.
      if (flight.header.type == wire::FrameType::ping) {
        receiver.on_ping(now, flight.header, flight.ping, flight.length + wire::overhead_bytes,
                         false);
        continue;
      }
      const Placement placement = receiver.place(flight.header, flight.length);
      if (placement.verdict == Placement::Verdict::malformed) ++wrong_bytes;
      if (placement.verdict == Placement::Verdict::fresh && config.is_body_checked)
        std::copy(flight.body.begin(), flight.body.end(), placement.target.begin());
      if (placement.verdict == Placement::Verdict::fresh ||
          placement.verdict == Placement::Verdict::duplicate)
        receiver.accept(now, flight.header, flight.length, placement, false);
    }
  }

  void report() {
    wire::Feedback feedback, decoded;
    std::vector<std::byte> bytes(2048);
    std::size_t total_ranges = 0;
    while (receiver.next_feedback(now, feedback)) {
      total_ranges += feedback.range_count;
      std::size_t covered = 0;
      const std::size_t length = wire::encode_feedback(feedback, bytes, covered);
      if (happens(config.feedback_loss)) continue;
      ONEHOP_CHECK(
          wire::decode_feedback({bytes.data(), length}, decoded));  // our own encoder wrote it
      const wire::Violation v = sender.on_feedback(now, decoded);
      if (v != wire::Violation::none) violation = v;
    }
    ranges_max = std::max(ranges_max, total_ranges);
  }

  void drain() {
    for (BlockRef block; receiver.pop_full(block);) {
      for (std::uint32_t i = 0; config.is_body_checked && i < block.length; ++i)
        wrong_bytes += block.data[i] != byte_at(block.file, block.offset + i) ? 1 : 0;
      ++blocks_checked;
      receiver.add_free(block);
    }
  }

  std::priority_queue<Flight> flights;
  std::vector<std::uint32_t> free_slots;
  std::uint64_t order = 0, next_offset = 0;
  std::uint32_t next_file = 0;
};

}  // namespace onehop::protocol
