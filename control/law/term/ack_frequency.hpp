// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AckFrequency: how far apart the peer's reports may be, by what the MAC reports of its own
// acknowledgements.
//
//                        Wi-Fi                         elsewhere, where a MAC counts
//   interval             B / rate, in 50..400 ms       default (srtt/4)   quiet < Q
//                                                      srtt               quiet < 1 s
//                                                      2 srtt             longer; at most 100 ms
//   MAC failures grow    ask for missing ranges        likewise, and quiet begins anew
//   receiver drops grow  default for Q                 quiet begins anew
//   its buffers limit it default for Q                 quiet begins anew
//
//   B = 0.4 of the peer's receive ring, in 7..10 MB;   Q = max(4 srtt, 100 ms)
//   quiet = time since MAC failures or the receiver's drops grew, or its buffers limited v_0
//
// Without MAC counters Wi-Fi is as above: each report costs a turn on the air. A wire keeps the
// default. On an unknown medium a report may cost such a turn: a fifth of the ring's time, at most
// 100 ms, and at most srtt for Q after a loss (with the default, 2 to 4 % of the air went to loss
// by collision with reports, configs/ns3/facts.toml). Where no queue is seen, reports are its only
// sensor and are 25 ms apart at most.
//
// Source: [WDTCP], acknowledgement removal. type=deviation reason=the paper drops acknowledgements
// altogether. A MAC's success does not prove that the receiving host kept the data, and an ordinary
// socket learns no per-frame status. So reports become rarer and never end, and a file is complete
// only when the peer's digest says so. The file itself is the store for repair, so the paper's
// lifetime of retained packets has no use here.
#pragma once

#include <cstdint>

#include "control/law/controller.hpp"

namespace onehop::law {

class AckFrequency {
 public:
  /// step returns the interval between reports; 0: the default. It takes what limited the rate in
  /// this step as well.
  [[nodiscard]] Nanos step(const LinkSample& sample, Bottleneck bottleneck) noexcept;
  /// requests_total: how often the missing ranges were to be asked for.
  [[nodiscard]] std::uint64_t requests_total() const noexcept { return requests_total_; }

 private:
  void update_rate(const LinkSample& sample) noexcept;
  [[nodiscard]] Nanos longest_interval(const LinkSample& sample) noexcept;
  [[nodiscard]] bool update_quiet(const LinkSample& sample, Bottleneck bottleneck,
                                  const MacCounters* mac) noexcept;

  std::uint64_t failed_total_ = 0;
  std::uint64_t dropped_total_ = 0;
  std::uint64_t lost_total_ = 0;
  std::uint64_t requests_total_ = 0;
  Instant quiet_at_{};     // when quiet began
  Instant lost_at_{};      // when a loss was last reported
  Instant seen_at_{};      // a queue, by whatever sensor
  BytesPerSecond rate_{};  // handed to the port, wire
  Bytes measured_sent_{};
  Instant measured_at_{};
  bool has_reading_ = false, has_mac_ = false;
};

}  // namespace onehop::law
