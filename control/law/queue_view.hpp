// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// QueueView: what of ours stands below us, by the best sensor of this tick. Pure; wire bytes.
//
//   port pushes back     ─▶ the port's own outstanding bytes: they hold everything below us, the hidden ring as well
//   else exact queue     ─▶ the MAC's own reading, less what others have in it
//   else qdisc dump      ─▶ the same, from a reading that is at most 8 ms old
//   else nothing         ─▶ scope none
//
// A fresh exact queue makes the view exact even where the port's number is the one used: it says that the link itself
// takes from what the port counts. The port's number wins, because it is nearest to us: a queue further down may tell
// less of it, never more.
#pragma once

#include "control/law/controller.hpp"

namespace onehop::law {

struct QueueView {
  QueueTelemetry queue;         ///< scope none: nothing could be read
  Bytes foreign{};              ///< of others, in the same queue
  Bytes stood{};                ///< the least that any sensor says of our bytes in it
  QueueSensor sensor = QueueSensor::none;
  bool has_push_back = false;   ///< the port waits for this queue, so a backlog limit holds it
  bool is_exact = false;
};

[[nodiscard]] QueueView view_queue(const LinkSample& sample) noexcept;

/// pushes_back: a port with such a queue accepts no more than the backlog limit lets stand in it.
[[nodiscard]] constexpr bool pushes_back(QueueScope scope) noexcept {
  return scope == QueueScope::driver || scope == QueueScope::lower_queue;
}

/// without_refused is the port's queue with drained_total as what the link took: a port counts a frame that was refused as gone,
/// and on a link that is down our own rate would pass for the link's.
[[nodiscard]] inline QueueTelemetry without_refused(const PathReport& path) noexcept {
  QueueTelemetry queue = path.tx_queue;
  queue.drained_total -= path.wire_per_frame * static_cast<std::int64_t>(queue.refused_total);
  return queue;
}

/// has_data: the source offers bytes and the peer has room for them, so an empty queue is our own doing.
[[nodiscard]] constexpr bool has_data(const PathReport& path) noexcept {
  return path.offered > Bytes{0} && !path.is_credit_limited;
}

/// VisitMeter: what leaves the queue between two visits of the engine core, S. The core refills up to the backlog limit
/// once per nap, so the queue is a saw of height S below that limit, and a limit of less than S runs dry.
class VisitMeter {
 public:
  /// add takes the report that a new reading came with; `drained` is what left since the last one.
  void add(const PathReport& path, Bytes drained) noexcept;
  [[nodiscard]] Bytes amplitude() const noexcept { return amplitude_; }

 private:
  Bytes amplitude_{};
  std::uint64_t turns_total_ = 0, wakeups_total_ = 0;
  Instant at_{};
  bool has_reading_ = false;
};

}  // namespace onehop::law
