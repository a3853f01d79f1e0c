// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// saturate: what the model carries where a's queue is never empty and b sends nothing. In virtual
// time; a run that is to be believed is compared with it.
#pragma once

#include "tools/labs/lab/air/channel.hpp"

namespace onehop::lab::air {

struct Saturated {
  BytesPerSecond goodput;  ///< of `payload` bytes per frame
  double mpdus_per_exchange = 0;
  double busy_share = 0;  ///< air in use, of all time
};

/// saturate runs `time` of Ethernet frames of `frame` bytes that carry `payload` each.
[[nodiscard]] Saturated saturate(const ChannelOptions& options, Bytes frame, Bytes payload,
                                 Nanos time);

}  // namespace onehop::lab::air
