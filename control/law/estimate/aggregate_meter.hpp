// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AggregateMeter: L, the bytes that the link takes at one instant (an A-MPDU), learnt from what
// leaves the lower queue.
//
// Between two transmissions nothing leaves the queue, and at the end of one everything it carried
// leaves at once. So what left between two readings that are at most 0.8 frame exchanges apart left
// in one aggregate, or in none. Of 32 such steps with something in the queue:
//
//   some saw nothing leave (a sixth)   L_sample <- the largest that left;  fill <- their mean / L
//   each saw something leave           the link sends frame by frame: L_sample <- the floor
//   L  <- L + (L_sample - L)/2         upwards
//      <- L + (L_sample - L)/8         downwards, only if the backlog once was 1.6 x the largest
//
// A burst that took nearly all there was shows the queue's length and not the link's limit: it may
// raise L, never lower it. Else a queue that is too short would teach an L that keeps it so.
//
// A negotiated limit is better than any estimate and replaces it, until aggregates were seen whose
// mean is 5 % longer: then it was reported too short (a window of 128 frames that the MAC rounds up
// to 256). A station's air time limit bounds all. Called by laws with each new report. Pure.
#pragma once

#include <cstdint>

#include "engine/base/path.hpp"
#include "engine/base/units.hpp"

namespace onehop::law {

class ParamReader;

struct AggregateParams {
  Bytes start{64 * 1024};  ///< one full HT aggregate; also what many drivers stay at
  Bytes least{16 *
              1024};  ///< below it a queue is a few frames, and each nap of the core empties it
  Bytes most{4 * 1024 * 1024};  ///< HE's limit

  void read(ParamReader& reader);
  [[nodiscard]] bool operator==(const AggregateParams&) const = default;
};

class AggregateMeter {
 public:
  explicit AggregateMeter(const AggregateParams& params) noexcept
      : params_{params}, learnt_{params.start} {}

  /// add takes the core's last step from `path`, and the backlog now.
  void add(const PathReport& path, Bytes occupancy, Nanos exchange) noexcept;

  /// limit is L: `negotiated` where that is known, else learnt, and never more than 5.484 ms of air
  /// at the physical rate. Where `phy` is not known, `drain` stands in: too little by what waits
  /// and others take of the air.
  [[nodiscard]] Bytes limit(const Bytes* negotiated, const BytesPerSecond* phy,
                            BytesPerSecond drain) const noexcept;
  /// mean_burst is the mean aggregate of the last window; zero while the link looks smooth.
  /// windows_total counts windows.
  [[nodiscard]] Bytes mean_burst() const noexcept { return mean_burst_; }
  [[nodiscard]] std::uint64_t windows_total() const noexcept { return windows_total_; }
  /// is_full: the last window's aggregates had, in the mean, next to all of `limit`.
  [[nodiscard]] bool is_full(Bytes limit) const noexcept {
    return mean_burst_ > Bytes{0} && mean_burst_.count * 1000 >= limit.count * full_permille;
  }
  /// has_run_dry: in a step of the last window the whole backlog left.
  [[nodiscard]] bool has_run_dry() const noexcept { return has_run_dry_; }

 private:
  // Measured in ns-3. Low: short aggregates pass for full ones. High: a frame that is repeated
  // makes a full one short.
  static constexpr std::int64_t full_permille = 985;

  void close_window() noexcept;

  AggregateParams params_;
  Bytes learnt_;
  Bytes seen_{};     // mean burst, of windows with whole aggregates
  Bytes largest_{};  // of this window
  Bytes backlog_max_{};
  Bytes sum_{};
  std::int32_t steps_ = 0, quiet_steps_ = 0;
  bool is_dry_ = false;
  Bytes mean_burst_{};
  bool has_run_dry_ = false;
  std::uint64_t windows_total_ = 0;
  Instant at_{};
};

}  // namespace onehop::law
