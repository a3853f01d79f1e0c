// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Lane: one direction's frames between the model and the gate. It knows by count which frames the
// model has released and which have left, and grants the difference. What left is counted behind
// the gate, so a grant that the kernel did not use is given again, and one that it used twice is
// not.
//
//   arrived ───────────── released by the model ───────────── departed, counted behind the gate
//           in the model's queue                  granted now
#pragma once

#include <cstdint>
#include <vector>

#include "tools/labs/lab/air/channel.hpp"
#include "tools/labs/lab/air/gate.hpp"
#include "tools/labs/lab/air/taps.hpp"

namespace onehop::lab::air {

struct LaneCounters {
  std::uint64_t grants_total = 0;
  std::uint64_t regrants_total = 0;  ///< of frames that had been granted before and had not left
  std::uint64_t leaked_frames_total = 0;  ///< gone before their time, seen at each release
};

class Lane {
 public:
  Lane(std::size_t station, Gate gate, std::uint32_t unit)
      : station_{station}, gate_{std::move(gate)}, unit_{unit}, costs_(costs_max) {}

  /// take moves what came to the gate into the model. Syscalls: none.
  void take(Taps& taps, Channel& channel);
  /// release lets the frames of `release` go. False where the gate is gone. Syscalls: as
  /// Gate::grant.
  [[nodiscard]] bool release(Taps& taps, const Release& release, Instant now);
  /// repeat grants again what should have left some time ago. Syscalls: as Gate::grant, where it
  /// does.
  [[nodiscard]] bool repeat(const Taps& taps, Instant now);

  /// owed_frames: released and not departed.
  [[nodiscard]] std::uint64_t owed_frames(const Taps& taps) const noexcept;
  [[nodiscard]] const LaneCounters& counters() const noexcept { return counters_; }
  [[nodiscard]] int gate_error() noexcept { return gate_.error(); }

 private:
  // Above the largest queue and one GSO packet.
  static constexpr std::size_t costs_max = 16'384;
  // A frame that was granted leaves within the grant, or is being sent by another CPU just now.
  static constexpr Nanos departure_patience = 300us;

  /// grant pays for the owed frames, or the last `frames_max` of them.
  [[nodiscard]] bool grant(const Taps& taps, std::uint64_t frames_max, Instant now);

  std::size_t station_;
  Gate gate_;
  std::uint32_t unit_;
  std::vector<std::uint16_t> costs_;
  std::uint64_t arrived_total_ = 0;
  std::uint64_t released_total_ = 0;
  Instant granted_at_{};
  LaneCounters counters_;
};

}  // namespace onehop::lab::air
