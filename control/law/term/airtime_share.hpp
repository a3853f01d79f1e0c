// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AirtimeShare: the rate that gives every active station of the channel the same air, from the
// channel's busy time.
//
//   C physical rate     U used air, as a part of what a saturated channel shows
//   N active stations   k C: what C carries     R_recv: what the peer gets
//
//   (1) start     R = k C   until R_recv >= R_init = eta k C / N, or no rise for 3 round trips
//   (2) U >= eta  R = R_init
//   (3) U <  eta  R = R_recv + (eta - U) k C / N;   R_recv = 0: R_init
//
//   ┌───────┐ R_recv >= R_init, no rise ┌────────────┐ U < eta - 0.05 ┌────────────────┐
//   │ start │──────────────────────────▶│ fair share │◀──────────────▶│ add the unused │
//   └───────┘                           └────────────┘    U >= eta    └────────────────┘
//
// Source: [CUPID], start and steady state; the constants' reasons stand beside them. Assumes that
// both ends hear the same channel, so that the sender computes what the paper's receiver computes.
// type=deviation reason=on one hop they do. A radio that does not count busy time, or no physical
// rate: no share. Called by laws; reads no clock.
#pragma once

#include <cstdint>
#include <optional>

#include "control/law/controller.hpp"

namespace onehop::law {

class ParamReader;

struct AirtimeShareParams {
  //= [CUPID] eta = 0.8: type=deviation
  //=   reason=the paper's is of all time, and a saturated channel, which waits between frames, is
  //=   busy for 0.7 to 0.8 of it; U is a part of that, where the paper's eta would be 1
  // Lower: air stays unused; higher: no free air is left in which a newcomer would show.
  Gain eta{950};
  Gain hysteresis{50};  ///< below eta; without it each reading may flip between (2) and (3)
  Gain k_start{650}, k_lowest{400}, k_highest{950};  ///< 800/1201 in the paper's set-up
  // Busy share of a saturated channel until one was seen: 0.7 to 0.8 with 64-KB aggregates at high
  // rates, 0.9 at low ones and with large aggregates (ns-3). Lower: a slow link never fills the
  // channel, and so never learns; higher: shares are added to for a second or two before they are
  // made even.
  Gain use_saturated{850};
  Nanos interval_min{20ms}, interval_max{100ms};  ///< survey counters have a resolution of 1 ms
  std::int32_t stations_max = 16;

  void read(ParamReader& reader);
  [[nodiscard]] bool operator==(const AirtimeShareParams&) const = default;
};

struct Share {
  BytesPerSecond rate{};      ///< wire
  BytesPerSecond line{};      ///< k C
  Gain use{};                 ///< U
  std::int32_t stations = 1;  ///< N
};

enum class MissingSensor : std::uint8_t { none, airtime, phy_rate };

class AirtimeShare {
 public:
  explicit AirtimeShare(const AirtimeShareParams& params) noexcept;
  /// step returns the share, or nothing while a sensor is missing or the first interval has not
  /// passed.
  [[nodiscard]] std::optional<Share> step(const LinkSample& sample) noexcept;
  [[nodiscard]] MissingSensor missing() const noexcept { return missing_; }
  [[nodiscard]] Gain k() const noexcept { return {static_cast<std::int64_t>(k_ * 1000)}; }

 private:
  enum class Phase : std::uint8_t { start, fair, add };
  struct Mark {  // counters at the beginning of an interval
    Instant at{};
    Nanos active{0}, busy{0};
    std::optional<Nanos> own_tx, own_rx;
    Bytes received{};            // what the peer has, wire
    Instant received_at{};       // on the peer's clock
    bool is_backlogged = false;  // our own queue is not empty
  };
  void forget() noexcept;
  /// is_still: the counters are read and do not move.
  [[nodiscard]] bool is_still(Instant now, const ChannelAirtime& channel) noexcept;
  [[nodiscard]] static Mark mark_of(const LinkSample& sample,
                                    const ChannelAirtime& channel) noexcept;
  void update_saturation(const Mark& now) noexcept;
  void close_interval(const LinkSample& sample, const Mark& now) noexcept;
  void count_stations(const LinkSample& sample, double busy, double own) noexcept;
  void update_k(const Mark& now) noexcept;
  void update_rate(const LinkSample& sample) noexcept;
  [[nodiscard]] double line() const noexcept { return k_ * capacity_; }
  [[nodiscard]] double fair() const noexcept;

  AirtimeShareParams params_;
  MissingSensor missing_ = MissingSensor::none;
  Phase phase_ = Phase::start;
  Mark interval_, second_, k_mark_;
  Nanos active_{-1};     // the newest reading's total
  Instant active_at_{};  // when it last grew
  bool has_interval_ = false, was_backlogged_ = false, has_saturated_ = false, has_share_ = false;
  double capacity_ = 0;  // C of the newest reading, bytes/s
  double applied_capacity_ = 0, k_capacity_ = 0;
  std::int32_t applied_stations_ = 1;
  double k_;
  double use_saturated_;
  double use_ = 0;       // U
  double received_ = 0;  // R_recv of the last interval, bytes/s
  double received_best_ = 0;
  Instant rose_at_{};
  double others_ = 0;  // foreign / own, EWMA
  std::int32_t stations_ = 1;
  double rate_ = 0;
};

}  // namespace onehop::law
