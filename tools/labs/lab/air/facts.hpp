// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AirFacts: what the model knows of the link, as one end would read it from its driver. AirTeller:
// sends it to a program on that end, as late and as seldom as the profile says.
#pragma once

#include <deque>
#include <optional>
#include <random>
#include <string>

#include "control/law/link_facts.hpp"
#include "control/link/emulated_source.hpp"
#include "tools/labs/lab/air/air_profile.hpp"
#include "tools/labs/lab/air/channel.hpp"

namespace onehop::lab::air {

/// AirReading is what the facts of one end are made of.
struct AirReading {
  Instant at{}, begun{};
  std::size_t station = 0;
  std::uint64_t refused_total = 0;
  Bytes capacity{};
  std::optional<Nanos>
      exchange;  ///< the station's last: from the idle channel to the end of the answer
};

/// air_facts is pure.
[[nodiscard]] law::LinkFacts air_facts(const Channel& channel, const AirProfile& profile,
                                       Bytes frame_max, const AirReading& reading);

class AirTeller {
 public:
  /// open sends to the Unix datagram socket at `path`; nobody needs to listen. Syscalls: socket,
  /// getrandom.
  [[nodiscard]] static Result<AirTeller> open(const std::string& path, const FactsProfile& profile,
                                              std::uint64_t seed);

  [[nodiscard]] bool is_due(Instant now) const noexcept { return now >= next_at_; }
  /// tell takes facts that were read now, and sends those whose time has come. Syscalls: sendto.
  void tell(Instant now, const law::LinkFacts& facts);
  /// is_heard: somebody took the newest datagram.
  [[nodiscard]] bool is_heard() const noexcept { return is_heard_; }

 private:
  struct Waiting {
    Instant read_at;
    law::LinkFacts facts;
  };
  AirTeller(link::FactsPublisher publisher, const FactsProfile& profile, std::uint64_t seed)
      : publisher_{std::move(publisher)}, profile_{profile}, random_{seed} {}

  link::FactsPublisher publisher_;
  FactsProfile profile_;
  std::mt19937_64 random_;
  std::deque<Waiting> waiting_;
  Instant next_at_{};
  bool is_heard_ = false;
};

}  // namespace onehop::lab::air
