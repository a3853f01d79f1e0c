// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// StrangerLog decides which rejected connections get a line in the log. Strangers connect as often
// as they like: an address gets one line a minute, with the number of its connections that were
// left out since its last line. Pure; the caller gives the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "engine/base/system/address.hpp"
#include "engine/base/units.hpp"

namespace onehop::transfer {

class StrangerLog {
 public:
  static constexpr Nanos interval = std::chrono::minutes{1};
  /// Addresses at a time. Those beyond share one line a minute, so that a stranger with many
  /// addresses cannot fill the log.
  static constexpr std::size_t addresses_max = 64;

  /// note returns the number of connections without a line before this one, if this one gets a
  /// line: those of its address, and those of addresses that lost their place.
  [[nodiscard]] std::optional<std::uint64_t> note(const IpAddress& address, Instant now);

 private:
  static constexpr Instant never{-interval};
  struct Line {
    Instant said_at;
    std::uint64_t unsaid_total = 0;
  };
  /// find_line: null where all places are taken.
  [[nodiscard]] Line* find_line(const IpAddress& address, Instant now);

  std::map<IpAddress, Line> lines_;
  Line others_{.said_at = never};  // of all addresses without a place
};

}  // namespace onehop::transfer
