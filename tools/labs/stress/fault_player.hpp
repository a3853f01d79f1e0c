// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FaultPlayer: begins and ends faults in a world. A fault that begins while it lasts is prolonged.
// One thread.
#pragma once

#include <array>
#include <string>

#include "tools/labs/stress/link_facts.hpp"
#include "tools/labs/stress/random.hpp"
#include "tools/labs/stress/schedule.hpp"
#include "tools/labs/world/world.hpp"

namespace onehop::stress {

class FaultPlayer {
 public:
  FaultPlayer(scenario::World& world, const Schedule& schedule);

  void begin(const FaultEvent& event);
  /// next_end is when the first of the present faults ends; Instant::max() where there is none.
  [[nodiscard]] Instant next_end() const noexcept { return next_end_; }
  void end_due(Instant now);
  void end_all();
  /// delay is how late a turn comes, by jitter.
  [[nodiscard]] Nanos delay() noexcept;
  [[nodiscard]] std::string active_names() const;

 private:
  void set(Fault fault, bool is_on, Instant until);
  void set_rate();
  void set_mtu(bool is_low);
  void set_disorder(bool is_on);
  void rebind();
  void find_next_end() noexcept;
  [[nodiscard]] bool is_on(Fault fault) const noexcept {
    return until_[static_cast<std::size_t>(fault)] != Instant{};
  }

  scenario::World& world_;
  const Schedule& schedule_;
  Random random_;
  StressFacts facts_;
  std::array<Instant, faults> until_{};  // Instant{}: not now
  Instant next_end_ = Instant::max();
};

}  // namespace onehop::stress
