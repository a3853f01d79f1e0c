// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Pair: a Sender and a Receiver back to back over a small link model in virtual time. No loop, no
// AEAD, no law: what a test sees here is the transfer core alone. One thread; nothing reads a
// clock; everything follows from the seed.
//
//   pattern ─▶ Sender ─▶ [loss, duplication, reordering, delay, MTU] ─▶ Receiver ─▶ disk (checks)
//                  ▲──────────────────── feedback, pong ────────────────────┘
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <random>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/base/units.hpp"
#include "engine/protocol/receiver.hpp"
#include "engine/protocol/sender.hpp"

namespace onehop::protocol {

struct WayConfig {
  std::uint32_t loss_ppm = 0, duplicate_ppm = 0, reorder_ppm = 0;
  Nanos delay = 1ms;
  Nanos reorder_delay = 2ms;              ///< how much later a reordered frame arrives
  std::size_t body_bytes_max = 1U << 20;  ///< a larger body is lost (MTU)
};

struct PairConfig {
  std::uint64_t seed = 1;
  std::vector<std::uint64_t> file_sizes{3'000'000};
  SenderParams sender{.body_bytes_max = 1400, .block_slots = 16};
  std::size_t receiver_slots = 16;
  std::size_t gap_ranges_max = 4096;
  Bytes ring_capacity = mib(4);
  WayConfig forward{}, backward{};
  BytesPerSecond rate = mbit_per_s(600);
  Nanos step = 100us;
  Nanos disk_time = 0ns;  ///< per block
  bool is_checking_bytes = true;
};

class Pair {
 public:
  explicit Pair(const PairConfig& config);

  /// step plays one step; run_until_whole plays until every byte is known to have arrived, or
  /// `span` has gone.
  void step();
  bool run_until_whole(Nanos span);
  void run(Nanos span);

  PairConfig config;  ///< ways, rate and disk may be changed under way
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
  Instant now{1s};
  Bytes own_queue{};  ///< what tick() is told
  bool is_disk_stalled = false;
  bool is_data_allowed = true;
  std::uint64_t wrong_bytes = 0, blocks_written = 0, violations = 0;
  std::uint64_t frames_sent = 0, data_frames_sent = 0, pings_sent = 0, ranges_reported_max = 0;
  std::size_t in_flight_max_seen = 0;

 private:
  struct Flying {
    Instant at{};
    std::uint64_t order = 0;
    wire::FrameHeader header;
    std::size_t body_bytes = 0;
    wire::Ping ping;
    bool operator<(const Flying& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  struct Returning {
    Instant at{};
    std::uint64_t order = 0;
    bool is_pong = false;
    wire::Pong pong;
    std::shared_ptr<const wire::Feedback> feedback;
    bool operator<(const Returning& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  void feed();
  void send();
  void deliver();
  void write();
  void answer();
  void hear();
  [[nodiscard]] bool draw(std::uint32_t ppm) { return ppm != 0 && random_() % 1'000'000 < ppm; }
  [[nodiscard]] Instant arrival(const WayConfig& way);
  [[nodiscard]] static std::byte pattern(std::uint32_t file, std::uint64_t offset) {
    const std::uint64_t x = (offset + 1) * 0x9E3779B97F4A7C15ULL + file * 0xBF58476D1CE4E5B9ULL;
    return static_cast<std::byte>(x >> 56);
  }

  std::mt19937_64 random_;
  std::unique_ptr<std::byte[]> source_, sink_;
  std::vector<std::uint32_t> free_source_;
  std::deque<BlockRef> disk_;
  Instant disk_free_at_{};
  std::priority_queue<Flying> flying_;
  std::priority_queue<Returning> returning_;
  std::uint64_t order_ = 0;
  std::uint32_t next_file_ = 0;
  std::uint64_t next_offset_ = 0;
  bool has_ended_ = false;
  Bytes debt_{};
};

}  // namespace onehop::protocol
