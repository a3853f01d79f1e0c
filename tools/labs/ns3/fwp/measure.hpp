// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The two comparisons of the FWP paper, one number each, from a seed: what table.hpp takes the mean
// of.
#pragma once

#include <cstdint>

#include "tools/labs/ns3/fwp/session.hpp"
#include "tools/labs/ns3/fwp/stations.hpp"

namespace onehop::fwp {

inline constexpr Nanos warm_up = 1s;

/// speed_up: file bytes of one station of ours over those of the mean of `competitors` A-MPDU
/// stations. Who gets how many turns is drawn: after a collision the loser waits for up to twice as
/// long while others win again and again, so that turns come in runs and scatter by 7 % over 2000
/// of them (2 s), where independent ones would by 2. So the mean over seeds is what counts.
[[nodiscard]] inline double speed_up(std::size_t competitors, double frame_error_rate, bool is_lazy,
                                     std::uint64_t seed, Nanos span) {
  FwpSession session{
      {.seed = seed, .frame_error_rate = frame_error_rate, .is_repair_lazy = is_lazy}};
  std::deque<AmpduStation> others;
  Air air{seed};
  air.add(session.sender_station());
  air.add(session.receiver_station());
  for (std::size_t i = 0; i < competitors; ++i)
    air.add(others.emplace_back(frame_error_rate, seed * 100 + i));
  const auto theirs = [&] {
    std::uint64_t frames = 0;
    for (const AmpduStation& other : others) frames += other.arrived();
    return static_cast<double>(frames * session.frame_payload_bytes()) /
           static_cast<double>(competitors);
  };
  air.run(warm_up);
  const double ours_before = static_cast<double>(session.bytes_arrived()), theirs_before = theirs();
  air.run(span *
          static_cast<int>(competitors +
                           1));  // our station has `span` of the channel, however many share it
  return (static_cast<double>(session.bytes_arrived()) - ours_before) / (theirs() - theirs_before);
}

/// report_turns: turns on the air that the reports of one station of ours took for each 10 MB of
/// its file, beside `competitors` A-MPDU stations.
[[nodiscard]] inline double report_turns(std::size_t competitors, double frame_error_rate,
                                         bool is_lazy, std::uint64_t seed, Nanos span) {
  FwpSession session{
      {.seed = seed, .frame_error_rate = frame_error_rate, .is_repair_lazy = is_lazy}};
  std::deque<AmpduStation> others;
  Air air{seed};
  air.add(session.sender_station());
  air.add(session.receiver_station());
  for (std::size_t i = 0; i < competitors; ++i)
    air.add(others.emplace_back(frame_error_rate, seed * 100 + i));
  air.run(warm_up);
  const double bytes = static_cast<double>(session.bytes_arrived()),
               turns = static_cast<double>(session.report_turns());
  air.run(span * static_cast<int>(competitors + 1));
  return (static_cast<double>(session.report_turns()) - turns) /
         (static_cast<double>(session.bytes_arrived()) - bytes) * 1e7;
}

/// share_beside_cubic: our file bytes over those of one Cubic-like flow with this round-trip time
/// beyond the hop.
[[nodiscard]] inline double share_beside_cubic(Nanos rtt, double frame_error_rate,
                                               std::uint64_t seed, Nanos span) {
  FwpSession session{{.seed = seed, .frame_error_rate = frame_error_rate}};
  CubicStation cubic{frame_error_rate, seed * 100, rtt};
  Air air{seed};
  air.add(session.sender_station());
  air.add(session.receiver_station());
  air.add(cubic);
  air.run(warm_up * 3);
  const double ours_before = static_cast<double>(session.bytes_arrived());
  const std::uint64_t theirs_before = cubic.arrived();
  air.run(span);
  const double theirs =
      static_cast<double>((cubic.arrived() - theirs_before) * session.frame_payload_bytes());
  return (static_cast<double>(session.bytes_arrived()) - ours_before) / theirs;
}

}  // namespace onehop::fwp
