// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Channel: stations that share one 802.11 channel, in virtual time. It says when the next one
// transmits, for how long, and which MPDUs have then arrived in order at the other end. Pure: no
// clock, no kernel; the same seed gives the same run.
//
//   start_i = max(idle_since + AIFS + b_i * slot, arrival_i)     b_i: the backoff, from 0..CW
//   the smallest start transmits; the same slot is a collision
//   one MPDU:    T = D + SIFS + ACK            several:  T = D + SIFS + Block Ack
//   no answer (collision, or all MPDUs lost):  T = max D + SIFS + slot + 20 us, and CW doubles
//   a loser keeps b_i less the slots that went by; a counter that ran out while it had no frame is
//   drawn again
//
//   arrive() ──▶ [0][1][2][3][4] ... ──▶ aggregate: within the window and the byte limit,
//                 ▲                      arrived before it starts
//                 head: first not yet acknowledged; a lost MPDU holds back those behind it
//
// Source: IEEE Std 802.11-2020 clause 10.23 (EDCA), 10.25 (Block Ack). Not modelled: TXOP limit,
// RTS/CTS, hidden stations, capture, EIFS, lost acknowledgements.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "tools/labs/lab/air/phy.hpp"

namespace onehop::lab::air {

struct ChannelOptions {
  PhyMode mode;
  int window_mpdus = 64;        ///< of the Block Ack: 64 or 256
  Bytes aggregate_max{65'535};  ///< of an A-MPDU
  std::uint32_t loss_ppm = 0;   ///< of the MPDUs, each on its own
  int retries_max = 7;          ///< a MPDU is given up after so many repetitions
  std::size_t stations = 2;
  std::uint64_t seed = 1;
};

/// StationCounters: growing totals of one station.
struct StationCounters {
  std::uint64_t sent_mpdus_total = 0;  ///< transmissions, repetitions included
  std::uint64_t retried_mpdus_total = 0;
  std::uint64_t failed_mpdus_total = 0;    ///< given up
  std::uint64_t released_mpdus_total = 0;  ///< left the queue in order, those given up included
  Bytes released_total{};                  ///< frames as they came, Ethernet header included
  std::uint64_t exchanges_total = 0;
  std::uint64_t collisions_total = 0;
  Nanos air_total{};  ///< from the preamble to the end of the answer
};

/// Exchange: one transmission and its answer. In a collision several stations transmit and
/// `station` is the first of them.
struct Exchange {
  Instant start{}, end{};
  std::size_t station = 0;
  int mpdus = 0;
  bool is_collision = false;
};

/// Release: MPDUs [first, first + count) of a station left its queue; `given_up` of them never
/// reached the other end.
struct Release {
  std::size_t station = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::vector<std::uint64_t> given_up;
};

class Channel {
 public:
  Channel(const ChannelOptions& options, Instant now);

  /// arrive puts a frame into a station's queue. Times of one station do not go back.
  void arrive(std::size_t station, Instant at, Bytes frame);
  /// set_mode changes the PHY rate from the next transmission on.
  void set_mode(const PhyMode& mode) noexcept { options_.mode = mode; }

  /// next_start is when somebody transmits, as far as the frames so far tell; nothing while all
  /// queues are empty.
  [[nodiscard]] std::optional<Instant> next_start() const noexcept;
  /// begin starts the transmission at next_start(), which must be there. finish ends it at `end`.
  [[nodiscard]] Exchange begin();
  [[nodiscard]] Release finish();

  [[nodiscard]] const StationCounters& counters(std::size_t station) const noexcept {
    return stations_[station].counters;
  }
  [[nodiscard]] std::size_t queued_mpdus(std::size_t station) const noexcept {
    return stations_[station].queue.size();
  }
  [[nodiscard]] Bytes queued(std::size_t station) const noexcept {
    return stations_[station].queued;
  }
  [[nodiscard]] Nanos busy_total() const noexcept { return busy_total_; }
  [[nodiscard]] Instant idle_since() const noexcept { return idle_since_; }
  [[nodiscard]] const PhyMode& mode() const noexcept { return options_.mode; }

 private:
  struct Mpdu {
    Instant at{};
    std::int32_t frame_bytes = 0;
    std::int16_t tries = 0;
    bool is_done = false;
    bool is_given_up = false;
  };
  struct Station {
    std::deque<Mpdu> queue;
    Bytes queued{};
    int backoff_slots = 0;
    int cw = cw_min;
    bool is_transmitting = false;
    std::vector<std::size_t> aggregate;  ///< places in the queue
    std::vector<bool> is_lost;           ///< of the aggregate's MPDUs
    StationCounters counters;
  };

  [[nodiscard]] Instant start_of(const Station& station) const noexcept;
  [[nodiscard]] std::int64_t slot_of(Instant start) const noexcept;
  Nanos compose(Station& station, Instant start);
  [[nodiscard]] bool draw_losses(Station& station);
  void settle_winner(Station& station, bool is_answered);
  void settle_loser(Station& station, std::int64_t elapsed_slots);
  void release_prefix(Station& station, Release& release);
  void draw_backoff(Station& station);

  ChannelOptions options_;
  std::mt19937_64 random_;
  std::vector<Station> stations_;
  Instant idle_since_;
  Nanos busy_total_{};
  std::optional<Exchange> exchange_;
};

}  // namespace onehop::lab::air
