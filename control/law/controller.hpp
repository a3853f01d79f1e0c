// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Controller: a rate law. Pure: it never reads a clock, a socket or a log, and it is crossed once per control tick, so
// it is a small abstract class.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "control/law/link_facts.hpp"
#include "engine/base/path.hpp"

namespace onehop::law {

/// LinkSample: all that a law may read in one tick.
struct LinkSample {
  Instant at{};
  PathReport path;               ///< from the engine core
  QueueTelemetry lower_queue;    ///< from the best link source (qdisc dump); scope none when there is none
  Nanos lower_queue_age{0};
  Bytes lower_queue_foreign{};   ///< bytes of other flows in it
  LinkFacts facts;               ///< what the link tells of itself; see there
  Limits limits;
  bool is_fresh = true;          ///< path was published since the last tick
};

/// BufferRow: one buffer's terms in the last step, as users plot them and tests read them.
struct BufferRow {
  Bytes occupancy{};             ///< X_i, payload bytes
  BytesPerSecond drain{};        ///< v_i
  Bytes target{};                ///< X_i^target
  BytesPerSecond rate{};         ///< v_i + (X_i^target - X_i) / d_i
  bool takes_part = false;       ///< in the min (latch, validity)
  std::optional<Bytes> under, over;  ///< X_i^under, X_i^over: the safe range; absent where the law has none for this buffer
  Bytes occupancy_max{};         ///< X_i^max; 0: unknown
};

/// LawDetails: what single laws add to a row. Absent where the law has no such quantity or could not compute it.
struct LawDetails {
  QueueSensor sensor = QueueSensor::none;      ///< who read the lower queue
  std::optional<Gain> alpha;                   ///< step of the physical rate in this tick
  std::optional<BytesPerSecond> beta;          ///< linear part, signed, wire
  std::optional<Bytes> a, b;                   ///< dead band of the lower queue, wire
  std::optional<Bytes> aggregate;              ///< L, wire
  std::optional<BytesPerSecond> phy_rate;      ///< C
  std::optional<Gain> airtime_use;             ///< U, of what a saturated channel shows
  std::optional<std::int32_t> stations;        ///< N
  std::optional<BytesPerSecond> share;         ///< R of the airtime share, wire
  std::optional<Nanos> tau;                    ///< of the gate
  std::optional<Bytes> gate;                   ///< bytes the gate lets stand below us, wire; absent while it is off
  std::optional<BytesPerSecond> loss_cap;      ///< wire; absent while the brake is off
  std::optional<Nanos> feedback_interval;      ///< asked of the peer; absent: the default
};

/// LawTrace: one step as a row.
struct LawTrace {
  Instant at{};
  std::array<BufferRow, 3> buffers{};  ///< tx queue, receiver ring, receiver application buffer
  BytesPerSecond rate{};
  Bytes backlog_max{};
  Bottleneck bottleneck = Bottleneck::none;
  bool is_degraded = false;            ///< X_under > X_over: no safe range, the target is the middle
  LawDetails details;
  std::uint32_t notices = 0;           ///< bits of Notice, only ever set
};

class Controller {
 public:
  virtual ~Controller() = default;
  /// step updates the model from one sample, then gives the next grant. `sample.at` never goes back.
  virtual RateGrant step(const LinkSample& sample) = 0;
  [[nodiscard]] virtual const LawTrace& trace() const = 0;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// is_constant: samples change nothing of its grants but their burst, so that it need not be asked often.
  [[nodiscard]] virtual bool is_constant() const { return false; }
};

}  // namespace onehop::law
