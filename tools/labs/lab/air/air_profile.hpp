// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AirProfile: what the [wifi] table of a lab profile says. Values only.
//
//   [wifi]
//   standard = "ax"           "ac" or "ax"                 width_mhz = 160          80 or 160
//   mcs = 11                  11ac 0..9, 11ax 0..11        streams = 2              1 or 2
//   block_ack = 64            64, or 256 for 11ax          aggregate_bytes = 65535
//   loss_permille = 10        of the MPDUs, both ways      retries = 7
//   queue_frames = 500        of each end
//   contenders = 0            other stations that always send
//   seed = 1                  of backoff and loss
//   [[wifi.trace]]  at = 0.5, mcs = 5
//   trace_period = 2.0        the trace repeats after it
//   [wifi.facts]              how the model reports itself:
//                             period_ms = 1, late_ms = 0, loss_permille = 0
#pragma once

#include <cstdint>
#include <vector>

#include "tools/labs/lab/air/channel.hpp"

namespace onehop::lab::air {

struct McsPoint {
  Nanos at{};
  int mcs = 0;
};

struct FactsProfile {
  Nanos period = 1ms;
  Nanos late{};                ///< each datagram is sent so much after its facts were read
  std::uint32_t loss_ppm = 0;  ///< of the datagrams
};

struct AirProfile {
  ChannelOptions channel;
  std::uint64_t queue_frames = 500;
  std::vector<McsPoint> trace;  ///< in order of time, the first at 0; empty: the rate is steady
  Nanos trace_period{};
  FactsProfile facts;
};

}  // namespace onehop::lab::air
