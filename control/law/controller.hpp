// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Controller: a rate law. Pure: it never reads a clock, a socket or a log, and it is crossed once
// per control tick, so it is a small abstract class.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "control/law/link_facts.hpp"
#include "engine/base/path.hpp"

namespace onehop::law {

/// LinkSample: all that a law may read in one tick.
struct LinkSample {
  Instant at{};
  PathReport path;  ///< from the engine core
  LinkFacts facts;  ///< what sensors have read below our port
  Limits limits;
};

/// BufferRow: one buffer's terms in the last step, as users plot them and tests read them.
struct BufferRow {
  Bytes occupancy{};                 ///< X_i, payload bytes
  BytesPerSecond drain{};            ///< v_i
  Bytes target{};                    ///< X_i^target
  BytesPerSecond rate{};             ///< v_i + (X_i^target - X_i) / d_i
  bool takes_part = false;           ///< in the min (latch, validity)
  std::optional<Bytes> under, over;  ///< X_i^under, X_i^over; absent where there is no safe range
  Bytes occupancy_max{};             ///< X_i^max; 0: unknown
};

/// LawDetails: what single laws add to a row. Absent where the law has no such quantity or could
/// not compute it.
struct LawDetails {
  QueueSensor sensor = QueueSensor::none;  ///< which sensor read the lower queue
  std::optional<Gain> alpha;               ///< step of the physical rate in this tick
  std::optional<BytesPerSecond> beta;      ///< linear part, signed, wire
  std::optional<Bytes> a, b;               ///< dead band of the lower queue, wire
  std::optional<Bytes> aggregate;          ///< L, wire
  std::optional<BytesPerSecond> phy_rate;  ///< C
  std::optional<Gain> airtime_use;         ///< U, of what a saturated channel shows
  std::optional<std::int32_t> stations;    ///< N
  std::optional<BytesPerSecond> share;     ///< R of the airtime share, wire
  std::optional<Nanos> tau;                ///< of the gate
  std::optional<Bytes> gate;               ///< backlog that it allows, wire; absent while the gate
                                           ///< is off
  std::optional<BytesPerSecond> loss_cap;  ///< wire; absent while there is none
  std::optional<Nanos> feedback_interval;  ///< asked of the peer; absent: the default
};

/// The least backlog limit, in frames: two batches of two. Ours. Low: the queue runs dry when a
/// core is late. High: delay on a slow link.
inline constexpr std::int64_t backlog_frames_min = 4;

/// batch_for converts `batch` to whole frames, within `least` and `most`.
[[nodiscard]] constexpr std::uint32_t batch_for(Bytes batch, Bytes frame, std::int64_t least,
                                                std::int64_t most) noexcept {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(batch.count / frame.count, least, most));
}

/// The bottleneck that each row of LawTrace::buffers stands for.
inline constexpr std::array bottleneck_of_buffer{Bottleneck::tx_queue, Bottleneck::rx_ring,
                                                 Bottleneck::app_buffer};

/// LawTrace: one step as a row, beside its grant.
struct LawTrace {
  std::array<BufferRow, 3> buffers{};  ///< tx queue, receiver ring, receiver application buffer
  Bottleneck bottleneck = Bottleneck::none;
  bool is_degraded = false;  ///< X_under > X_over: no safe range, the target is the middle
  LawDetails details;
  std::uint32_t notices = 0;  ///< bits of Notice, only ever set
};

class Controller {
 public:
  virtual ~Controller() = default;
  /// step updates the model from one sample, then gives the next grant. `sample.at` never goes
  /// back.
  virtual RateGrant step(const LinkSample& sample) = 0;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// is_constant: samples change only the burst of its grants, so the loop need not step it often.
  [[nodiscard]] virtual bool is_constant() const { return false; }
  /// trace is the last step as a row.
  [[nodiscard]] const LawTrace& trace() const noexcept { return trace_; }

 protected:
  LawTrace trace_;
};

/// WrapperLaw: a law around another one. It starts each of its rows as a copy of the inner law's
/// row.
class WrapperLaw : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return name_; }

 protected:
  WrapperLaw(std::unique_ptr<Controller> inner, std::string_view suffix)
      : inner_{std::move(inner)}, name_{std::string{inner_->name()}.append(suffix)} {
    trace_ = inner_->trace();
  }
  RateGrant step_inner(const LinkSample& sample) {
    const RateGrant grant = inner_->step(sample);
    const std::uint32_t notices = trace_.notices;
    trace_ = inner_->trace();
    trace_.notices |= notices;
    return grant;
  }

 private:
  std::unique_ptr<Controller> inner_;
  std::string name_;
};

}  // namespace onehop::law
