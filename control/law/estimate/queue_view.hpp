// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// QueueView: our own backlog below us, by the best sensor of this tick. Pure; wire bytes.
//
//   port pushes back  ─▶ the port's own outstanding bytes, the hidden ring included
//   else exact queue  ─▶ the MAC's own reading, less the bytes of others in it
//   else lower queue  ─▶ the same, from a queue with others below it (a qdisc)
//   else              ─▶ scope none
//
// A fresh exact queue makes the view exact even if the port's number is used: it shows that the
// link itself takes from what the port counts. The port's number has priority because it is nearest
// to us: a queue further down may show fewer of our bytes, and never more.
#pragma once

#include "control/law/controller.hpp"

namespace onehop::law {

struct QueueView {
  QueueTelemetry queue;   ///< scope none: nothing could be read
  Bytes foreign{};        ///< bytes of others in the same queue; not in queue.occupancy
  Bytes backlog_least{};  ///< the least that any sensor says has to leave until it is empty
  QueueSensor sensor = QueueSensor::none;
  bool has_push_back = false;  ///< the port waits for this queue, so a backlog limit holds it
  bool is_exact = false;

  [[nodiscard]] bool is_known() const noexcept { return queue.scope != QueueScope::none; }
};

[[nodiscard]] QueueView view_queue(const LinkSample& sample) noexcept;

/// view_inexact_queue leaves the exact queue out: it is what safe-range steers by.
[[nodiscard]] QueueView view_inexact_queue(const LinkSample& sample) noexcept;

/// lower_queue_foreign: bytes of other flows in the lower queue, by its last reading.
[[nodiscard]] inline Bytes lower_queue_foreign(const LinkSample& sample) noexcept {
  const auto& lower = sample.facts.lower_queue;
  return lower ? std::max(lower->value.foreign, Bytes{0}) : Bytes{0};
}

/// pushes_back: a port with such a queue accepts no more than the backlog limit.
[[nodiscard]] constexpr bool pushes_back(QueueScope scope) noexcept {
  return scope == QueueScope::driver || scope == QueueScope::lower_queue;
}

/// without_refused is the port's queue with drained_total as what the link took. A port counts a
/// refused frame as gone, and on a link that is down our own rate would pass for the link's.
[[nodiscard]] inline QueueTelemetry without_refused(const PathReport& path) noexcept {
  QueueTelemetry queue = path.tx_queue;
  queue.drained_total -= path.wire_per_frame * static_cast<std::int64_t>(queue.refused_total);
  return queue;
}

/// handed_total is what we handed to the port and it did not refuse, by our own packets and not by
/// the port's counters.
[[nodiscard]] inline Bytes handed_total(const PathReport& path) noexcept {
  const Bytes overhead = path.wire_per_frame - path.payload_per_frame;
  return Bytes{static_cast<std::int64_t>(path.counters.data_bytes_sent_total)} +
         overhead * static_cast<std::int64_t>(path.packets_sent_total) -
         path.wire_per_frame * static_cast<std::int64_t>(path.tx_queue.refused_total);
}

/// has_data: the source offers bytes and the peer has room, so an empty queue is our own doing.
[[nodiscard]] constexpr bool has_data(const PathReport& path) noexcept {
  return path.offered > Bytes{0} && !path.is_credit_limited;
}

}  // namespace onehop::law
