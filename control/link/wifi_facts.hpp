// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// WifiFacts: what nl80211 reports, as the facts that laws read. No socket, no clock: messages and
// their time come in.
//
// It remembers what turns the kernel's counters into growing totals: 32-bit counters wrap (4 GiB
// are half a minute at 1 Gbit/s), and all of them start again when the station associates anew.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "control/law/link_facts.hpp"
#include "control/link/nl80211_message.hpp"

namespace onehop::link {

/// GrowingTotal extends a counter of 32 bits.
class GrowingTotal {
 public:
  /// add takes the newest reading and gives the total since the first. `is_new`: the counter has
  /// begun anew since the last reading.
  std::uint64_t add(std::uint64_t reading, bool is_new = false) noexcept;

 private:
  std::optional<std::uint32_t> last_;
  std::uint64_t total_ = 0;
};

class WifiFacts {
 public:
  /// Stations count as active above either, over the time between two lists.
  static constexpr BytesPerSecond active_rate_min = mbit_per_s(1);
  static constexpr Gain active_airtime_min{50};

  /// add_station: the peer's entry. What the driver does not count stays absent; airtime that never
  /// moved although bytes did is not counted either (many drivers report the attribute and never
  /// fill it).
  void add_station(const StationMessage& station, Instant at, Nanos period, law::LinkFacts& facts);
  static void add_survey(const SurveyMessage& survey, Instant at, Nanos period,
                         law::LinkFacts& facts);
  /// add_list counts the active stations of an access point. Our own link counts as one, whichever
  /// end sends; a first list gives nothing, because activity is a difference.
  void add_list(std::span<const StationMessage> stations, const std::optional<MacAddress>& peer,
                Instant at, Nanos period, law::LinkFacts& facts);

 private:
  struct Activity {
    MacAddress mac{};
    std::uint64_t bytes = 0;
    Nanos airtime{0};
  };
  [[nodiscard]] bool is_active(const StationMessage& station, Nanos span) const noexcept;

  GrowingTotal drained_, txq_drops_, frames_, retries_, failed_;
  std::uint64_t packets_ = 0;  // of the peer's entry, as last read
  std::vector<Activity> last_list_;
  std::optional<Instant> listed_at_;
};

}  // namespace onehop::link
