// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AckSpacing: how far apart the peer's feedback may be, by what the MAC says of its own acknowledgements.
//
//                        Wi-Fi                                elsewhere, where a MAC counts
//   interval    =        B / rate, in 50..400 ms              default (srtt/4)   quiet < 4 srtt (at least 100 ms)
//                                                             srtt               quiet < 1 s
//                                                             2 srtt             longer;  at most 100 ms
//   MAC failures grow    "send your missing ranges now"       likewise, and quiet begins anew
//   receiver drops grow  default for 4 srtt, 100 ms           quiet begins anew
//   its buffers hold v_0 default for 4 srtt, 100 ms           quiet begins anew
//
//   B = 0.4 of the peer's receive ring, in 7..10 MB
//   quiet = time since MAC failures or the receiver's drops last grew, or its buffers last held v_0
//
// Without MAC counters Wi-Fi is as above: each report costs a turn on the air, whatever the driver tells. On a wire it
// is the default. Where nobody tells what the medium is, its cost is unknown: a fifth of the ring's time, at most 100
// ms, and srtt for 4 srtt (at least 100 ms) after a loss: the default took 2 to 4 % of the air where each loss was a
// report's collision (configs/ns3/facts.toml). Where no queue is seen, on whatever medium, reports are the only sensor
// of it and are 25 ms apart at most.
//
// Source: [WDTCP], acknowledgement removal. type=deviation reason=the paper drops acknowledgements altogether. A MAC's
// success does not prove that the receiving host kept the data, and an ordinary socket learns no per-frame status; so
// feedback becomes rarer and never ends, and a file is complete only when the peer's digest says so. Nothing is retained
// in memory for repair: the file itself is the store, so the paper's lifetime of retained packets has no use here.
#pragma once

#include <cstdint>

#include "control/law/controller.hpp"

namespace onehop::law {

class AckSpacing {
 public:
  struct Wish {
    Nanos interval{0};               ///< 0: the default
    std::uint64_t nack_request_id = 0;
  };
  /// step takes what held the rate in this step as well.
  [[nodiscard]] Wish step(const LinkSample& sample, Bottleneck bottleneck) noexcept;

 private:
  void follow_rate(const LinkSample& sample) noexcept;
  [[nodiscard]] Nanos follow_sight(const LinkSample& sample) noexcept;
  [[nodiscard]] bool follow_doubt(const LinkSample& sample, Bottleneck bottleneck, const MacCounters* mac) noexcept;

  std::uint64_t failed_total_ = 0;
  std::uint64_t dropped_total_ = 0;
  std::uint64_t lost_total_ = 0;
  std::uint64_t requests_ = 0;
  Instant grew_at_{};
  Instant lost_at_{};            // when a loss was told last
  Instant seen_at_{};            // a queue, by whatever sensor
  BytesPerSecond rate_{};        // handed to the port, wire
  Bytes rated_sent_{};
  Instant rated_at_{};
  bool has_reading_ = false, has_mac_ = false;
};

}  // namespace onehop::law
