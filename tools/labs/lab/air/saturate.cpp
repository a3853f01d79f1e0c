// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/air/saturate.hpp"

namespace onehop::lab::air {

Saturated saturate(const ChannelOptions& options, Bytes frame, Bytes payload, Nanos time) {
  const Instant begin{};
  const std::size_t enough = 2 * static_cast<std::size_t>(options.window_mpdus);
  Channel channel{options, begin};
  while (channel.idle_since() < begin + time) {
    // Stations beyond the pair are contenders, who always have something to send.
    for (std::size_t i = 0; i < options.stations; ++i)
      while (i != 1 && channel.queued_mpdus(i) < enough)
        channel.arrive(i, channel.idle_since(), frame);
    (void)channel.begin();
    (void)channel.finish();
  }
  const StationCounters& sender = channel.counters(0);
  const Nanos took = channel.idle_since() - begin;
  const auto arrived =
      static_cast<std::int64_t>(sender.released_mpdus_total - sender.failed_mpdus_total);
  return {.goodput = payload * arrived / took,
          .mpdus_per_exchange = sender.exchanges_total == 0
                                    ? 0
                                    : static_cast<double>(sender.sent_mpdus_total) /
                                          static_cast<double>(sender.exchanges_total),
          .busy_share = static_cast<double>(channel.busy_total().count()) /
                        static_cast<double>(took.count())};
}

}  // namespace onehop::lab::air
