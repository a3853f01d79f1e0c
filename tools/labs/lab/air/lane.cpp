// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/air/lane.hpp"

#include <algorithm>

#include "engine/base/check.hpp"

namespace onehop::lab::air {

void Lane::take(Taps& taps, Channel& channel) {
  onehop_gate_arrival packet;
  while (taps.next_arrival(station_, packet)) {
    const bool is_lump = packet.frames > 1 && !Gate::is_cut(packet.packet_bytes, unit_);
    for (unsigned i = 0; i < packet.frames; ++i) {
      const bool is_last = i + 1 == packet.frames;
      const std::uint16_t bytes = is_last ? packet.last_bytes : packet.first_bytes;
      const std::uint32_t cost = packet.frames == 1 || (is_lump && is_last) ? unit_
                                 : is_lump                                  ? 0
                                                                            : bytes;
      costs_[arrived_total_++ % costs_max] = static_cast<std::uint16_t>(cost);
      channel.arrive(station_, Instant{Nanos{static_cast<Nanos::rep>(packet.at_ns)}}, Bytes{bytes});
    }
  }
  ONEHOP_CHECK(arrived_total_ - released_total_ <= costs_max);
}

std::uint64_t Lane::owed_frames(const Taps& taps) const noexcept {
  const std::uint64_t departed = taps.departed_total(station_);
  return departed < released_total_ ? released_total_ - departed : 0;
}

bool Lane::grant(const Taps& taps, std::uint64_t frames_max, Instant now) {
  std::uint32_t cost = 0;
  for (std::uint64_t owed = std::min(owed_frames(taps), frames_max); owed > 0; --owed)
    cost += costs_[(released_total_ - owed) % costs_max];
  if (cost == 0) return true;  // its last frame pays for a packet that is not cut
  counters_.grants_total += 1;
  granted_at_ = now;
  return gate_.grant(cost);
}

bool Lane::release(Taps& taps, const Release& release, Instant now) {
  if (release.count == 0) return true;
  const std::uint64_t departed = taps.departed_total(station_);
  if (departed > released_total_) counters_.leaked_frames_total += departed - released_total_;
  for (const std::uint64_t frame : release.given_up) taps.give_up(station_, frame);
  released_total_ += release.count;
  // Frames of a grant just now may be on their way behind the gate and not counted yet: they are
  // not paid for twice.
  const bool may_be_leaving = now - granted_at_ < departure_patience;
  return grant(taps, may_be_leaving ? release.count : UINT64_MAX, now);
}

bool Lane::repeat(const Taps& taps, Instant now) {
  if (now - granted_at_ < departure_patience || owed_frames(taps) == 0) return true;
  counters_.regrants_total += 1;
  return grant(taps, UINT64_MAX, now);
}

}  // namespace onehop::lab::air
