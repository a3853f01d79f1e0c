// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Air: one channel of 600 Mbit/s (four streams of 150) that stations share, in virtual time from a
// seed.
//
//   every ready station draws a backoff ─▶ the least wins ─▶ RTS, CTS
//   ─▶ one aggregate of at most 32 frames [─▶ block ack]
//   two with the same: only the RTS is lost, both draw from twice the window
//
// The emulator of the FWP paper in our own code: ns-3 3.37 has no NoAck policy for QoS data. What
// it leaves out: capture, hidden stations, rate adaptation, beacons. One thread; it reads no clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "engine/base/units.hpp"

namespace onehop::fwp {

/// Atheros, as in the paper; the standard has 64
inline constexpr std::size_t aggregate_frames_max = 32;
/// 1500 of IP with MAC header, delimiter and padding
inline constexpr std::int64_t frame_air_bytes = 1530;

class Station {
 public:
  Station() = default;
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;
  virtual ~Station() = default;
  /// ready_frames: of the aggregate that it would send now; 0: it does not contend.
  [[nodiscard]] virtual std::size_t ready_frames() = 0;
  /// serve: the aggregate has been on the air; `at` is its end.
  virtual void serve(Instant at) = 0;
  [[nodiscard]] virtual bool has_block_ack() const = 0;
  /// play runs what the station does by itself up to `until`.
  virtual void play(Instant until) = 0;
};

class Air {
 public:
  explicit Air(std::uint64_t seed) : random_{seed} {}
  void add(Station& station) { seats_.push_back({&station, 0, contention_min, false}); }
  [[nodiscard]] Instant now() const noexcept { return now_; }

  void run(Nanos span) {
    const Instant until = now_ + span;
    while (now_ < until) turn();
  }

 private:
  // IEEE 802.11n OFDM PHY, 5 GHz: slot, DIFS = SIFS + 2 slots, RTS and CTS at 24 Mbit/s, HT-mixed
  // preamble of four streams, compressed block ack.
  static constexpr Nanos slot = 9us, difs = 34us, sifs = 16us, rts = 28us, cts = 28us,
                         preamble = 48us, block_ack = 32us;
  static constexpr std::uint32_t contention_min = 15, contention_max = 1023;
  static constexpr Nanos idle_step = 100us;  // while nobody has anything to send

  struct Seat {
    Station* station;
    std::uint32_t backoff;
    std::uint32_t window;
    bool is_contending;
  };

  void pass(Nanos span) {
    now_ += span;
    for (Seat& seat : seats_) seat.station->play(now_);
  }
  void draw(Seat& seat) {
    seat.backoff = static_cast<std::uint32_t>(random_() % (seat.window + 1));
  }

  void turn() {
    std::uint32_t least = ~0U;
    for (Seat& seat : seats_) {
      const bool is_ready = seat.station->ready_frames() > 0;
      if (is_ready && !seat.is_contending) draw(seat);
      seat.is_contending = is_ready;
      if (is_ready) least = std::min(least, seat.backoff);
    }
    if (least == ~0U) return pass(idle_step);
    std::vector<Seat*> winners;
    for (Seat& seat : seats_) {
      if (!seat.is_contending) continue;
      seat.backoff -= least;
      if (seat.backoff == 0) winners.push_back(&seat);
    }
    const Nanos wait = difs + least * slot;
    if (winners.size() > 1) {
      for (Seat* seat : winners) {
        seat->window = std::min(2 * seat->window + 1, contention_max);
        draw(*seat);
      }
      return pass(wait + rts + sifs + cts);
    }
    Seat& seat = *winners.front();
    const auto frames = static_cast<std::int64_t>(seat.station->ready_frames());
    const Nanos data = time_for(Bytes{frames * frame_air_bytes}, mbit_per_s(600));
    const Nanos ack = seat.station->has_block_ack() ? sifs + block_ack : Nanos{0};
    pass(wait + rts + sifs + cts + sifs + preamble + data + ack);
    seat.station->serve(now_);
    seat.window = contention_min;
    seat.is_contending = false;  // the next aggregate draws anew
  }

  std::mt19937_64 random_;
  std::vector<Seat> seats_;
  Instant now_{};
};

}  // namespace onehop::fwp
