// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// QueueTelemetry: what one queue says of itself. Ports, receiver buffers and link sources speak it.
//
// Invariant, checked on each port by the contract suite: accepted = drained_total + occupancy,
// where accepted is what the queue ever took in. A frame that was refused was never accepted.
#pragma once

#include <cstdint>

#include "engine/base/units.hpp"

namespace onehop {

/// QueueScope says how far down a number sees. Ports differ, and a law must know what it reads.
enum class QueueScope : std::uint8_t {
  none,         ///< no reading: the other fields mean nothing
  own_ring,     ///< our own ring or socket only; what the driver holds is not seen
  driver,       ///< until the driver gave the buffer back
  lower_queue,  ///< until the queue that shapes the link let the frame go
};

struct QueueTelemetry {
  Instant at{};                     ///< when it was read, on the reader's own clock
  Bytes occupancy{};                ///< bytes in the queue; ports: wire bytes of our frames
  Bytes drained_total{};            ///< bytes that ever left; only grows
  Bytes capacity{};                 ///< 0 where unknown
  std::uint64_t refused_total = 0;  ///< frames that the queue did not take or threw away
  QueueScope scope = QueueScope::none;
  bool is_backlogged = false;  ///< the consumer never found it empty in the owner's last window
};

}  // namespace onehop
