// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// VirtualLink: one link in virtual time, both directions, from a seed. Two VirtualPorts sit at its
// ends.
//
//   accept() ─▶ lower queue (bytes, rate) ─▶ loss, corruption, ... ─▶ in flight (delay)
//                                                                        └─▶ receiver ring ─▶ pop()
//
// Everything is exact, and nothing happens but in run_until(). Frames live in a pool made at the
// start, so that a guarded engine core may drive it. One thread; it reads no clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "engine/base/telemetry.hpp"
#include "engine/base/units.hpp"

namespace onehop {

/// VirtualLinkConfig describes one direction. Probabilities are per frame, in parts per million.
struct VirtualLinkConfig {
  BytesPerSecond rate = mbit_per_s(1000);  ///< of wire bytes; 0: blackout
  Bytes queue_capacity = kib(512);         ///< wire bytes, the frame being sent included
  bool is_drop_tail = false;  ///< a full queue throws frames away instead of pushing back
  Nanos delay = 50us;
  std::uint32_t loss_ppm = 0;
  std::uint32_t burst_enter_ppm = 0;  ///< Gilbert model: every frame in a burst is lost
  std::uint32_t burst_leave_ppm = 100'000;
  std::uint32_t reorder_ppm = 0;
  Nanos reorder_delay = 1ms;
  std::uint32_t duplicate_ppm = 0;
  std::uint32_t corrupt_ppm = 0;  ///< one bit flips
  std::uint32_t truncate_ppm = 0;
  Bytes ce_threshold{};            ///< queue above which frames are CE-marked; 0: never
  std::size_t mtu_bytes = 1500;    ///< of the IP packet
  std::size_t hole_bytes = 0;      ///< larger IP packets are lost on the way, unseen; 0: none
  std::size_t ring_frames = 1024;  ///< receiver's ring
  Bytes wire_overhead{42};
};

class VirtualLink {
 public:
  struct Options {
    std::array<VirtualLinkConfig, 2> directions{};  ///< [0]: from end 0 to end 1
    std::uint64_t seed = 1;
    std::size_t frame_bytes_max = 1472;
    std::size_t frames_max = 8192;  ///< frames in existence at once, both directions
  };

  explicit VirtualLink(const Options& options);

  /// run_until plays everything up to `now`; time that has passed is left alone.
  void run_until(Instant now) noexcept;
  [[nodiscard]] Instant now() const noexcept { return now_; }
  /// next_event is when something happens next by itself; Instant::max() where nothing will.
  [[nodiscard]] Instant next_event() const noexcept;

  /// Changes of the link take effect at now().
  void set_rate(std::size_t direction, BytesPerSecond rate) noexcept;
  /// take_opportunity sends up to `frames_max` frames from the queue at now(), whatever the rate:
  /// for a medium that is not a rate (rate 0) but turns on the air. waiting() tells how many stand
  /// there.
  void take_opportunity(std::size_t direction, std::size_t frames_max) noexcept;
  [[nodiscard]] std::size_t waiting(std::size_t direction) const noexcept {
    return ways_[direction].queue.size();
  }
  void set_mtu(std::size_t direction, std::size_t mtu_bytes) noexcept {
    way(direction).config.mtu_bytes = mtu_bytes;
  }
  void set_up(bool is_up) noexcept { is_up_ = is_up; }
  [[nodiscard]] VirtualLinkConfig& config(std::size_t direction) noexcept {
    return way(direction).config;
  }

  // --- used by VirtualPort ---
  using FrameIndex = std::uint32_t;
  static constexpr FrameIndex no_frame = ~FrameIndex{0};
  [[nodiscard]] FrameIndex take_free() noexcept;
  void put_free(FrameIndex frame) noexcept { free_.push_back(frame); }
  [[nodiscard]] std::span<std::byte> slot(FrameIndex frame) noexcept;
  void set_length(FrameIndex frame, std::size_t length_bytes) noexcept;
  /// accept puts a frame on the lower queue: 0, or the errno of a real socket. On an error the
  /// frame is still the caller's; EAGAIN means full.
  [[nodiscard]] int accept(std::size_t direction, FrameIndex frame) noexcept;
  [[nodiscard]] FrameIndex pop(std::size_t end) noexcept;
  [[nodiscard]] bool has_arrived(std::size_t end) const noexcept {
    return !ways_[1 - end].ring.is_empty();
  }
  [[nodiscard]] bool is_ce(FrameIndex frame) const noexcept { return frames_[frame].is_ce; }
  [[nodiscard]] std::size_t length(FrameIndex frame) const noexcept {
    return frames_[frame].length_bytes;
  }
  [[nodiscard]] QueueTelemetry lower_queue(std::size_t direction) const noexcept;
  [[nodiscard]] QueueTelemetry ring(std::size_t end) const noexcept;
  [[nodiscard]] Bytes wire_of(std::size_t direction, std::size_t length_bytes) const noexcept;
  [[nodiscard]] std::size_t frame_bytes_max() const noexcept { return frame_bytes_max_; }
  [[nodiscard]] Bytes memory() const noexcept {
    return {static_cast<std::int64_t>(storage_.size())};
  }

 private:
  struct Frame {
    std::size_t length_bytes = 0;
    bool is_ce = false;
  };
  // FrameQueue is a ring that never grows after its start.
  class FrameQueue {
   public:
    explicit FrameQueue(std::size_t capacity) : frames_(capacity) {}
    void push(FrameIndex frame) noexcept { frames_[tail_++ % frames_.size()] = frame; }
    [[nodiscard]] FrameIndex front() const noexcept { return frames_[head_ % frames_.size()]; }
    FrameIndex pop() noexcept { return frames_[head_++ % frames_.size()]; }
    [[nodiscard]] std::size_t size() const noexcept { return tail_ - head_; }
    [[nodiscard]] bool is_empty() const noexcept { return tail_ == head_; }

   private:
    std::vector<FrameIndex> frames_;
    std::size_t head_ = 0;
    std::size_t tail_ = 0;
  };
  struct Flight {
    Instant at{};
    std::uint64_t order = 0;
    FrameIndex frame = no_frame;
  };
  struct Way {
    Way(const VirtualLinkConfig& c, std::size_t frames_max)
        : config{c}, queue{frames_max}, ring{frames_max} {
      flights.reserve(frames_max);
    }
    VirtualLinkConfig config;
    FrameQueue queue;
    std::vector<Flight> flights;  // a heap, earliest in front
    FrameQueue ring;
    Wide head_left = 0;  // of the frame being sent, in byte-nanoseconds
    Instant served_at{};
    Bytes occupancy{};
    Bytes drained{};
    Bytes ring_bytes{};
    Bytes taken{};
    std::uint64_t ring_refused = 0;
    bool is_in_burst = false;
  };

  [[nodiscard]] Way& way(std::size_t direction) noexcept { return ways_[direction]; }
  [[nodiscard]] static Instant head_done_at(const Way& way) noexcept;
  void serve(Way& way, Instant now) noexcept;
  void start_head(Way& way) noexcept;
  void send_head(Way& way, Instant at) noexcept;
  void depart(Way& way, FrameIndex frame, Instant at) noexcept;
  void fly(Way& way, FrameIndex frame, Instant at) noexcept;
  void land(Way& way, Instant now) noexcept;
  [[nodiscard]] bool happens(std::uint32_t ppm) noexcept;

  std::size_t frame_bytes_max_;
  std::vector<std::byte> storage_;
  std::vector<Frame> frames_;
  std::vector<FrameIndex> free_;
  std::vector<Way> ways_;
  std::mt19937_64 random_;
  std::uint64_t order_ = 0;
  Instant now_{};
  bool is_up_ = true;
};

}  // namespace onehop
