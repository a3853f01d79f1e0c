// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AirPlayer plays the model on the kernel's queues: one turn per transmission.
//
//   taps ── arrivals ──▶ Channel ── next_start ──▶ sleep ──▶ begin
//        ── end ──▶ sleep ──▶ finish ──▶ gate opens for what arrived
//
// The model's time is absolute: a wake-up that comes late lets frames go late, and takes nothing
// from the next ones. It lives in a process of its own (air_process.hpp), on one thread.
#pragma once

#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/histogram.hpp"
#include "tools/labs/lab/air/air_profile.hpp"
#include "tools/labs/lab/air/facts.hpp"
#include "tools/labs/lab/air/lane.hpp"
#include "tools/labs/lab/air/taps.hpp"

namespace onehop::lab::air {

struct PlayerOptions {
  AirProfile profile;
  int mtu_bytes = 1500;
  std::array<TapOptions, ONEHOP_GATE_DIRECTIONS> directions;
  std::array<std::string, ONEHOP_GATE_DIRECTIONS> facts_paths;
};

class AirPlayer {
 public:
  /// open puts gates and taps on the link. Syscalls: of Taps, Gate and AirTeller.
  [[nodiscard]] static Result<AirPlayer> open(const PlayerOptions& options);

  /// run plays until `stop` is set, by a signal, or the link is gone. Syscalls: clock_nanosleep,
  /// epoll_wait, sendto.
  void run(const volatile std::sig_atomic_t& stop);
  /// report says what was carried, and whether to trust it.
  [[nodiscard]] std::string report();

 private:
  AirPlayer(const PlayerOptions& options, Taps taps, std::vector<Lane> lanes,
            std::vector<AirTeller> tellers);
  void take_arrivals();
  void follow_trace(Instant now) noexcept;
  void wait_idle(Instant now);
  void sleep_until(Instant deadline) noexcept;
  void tell(Instant now);
  [[nodiscard]] bool repeat_grants(Instant now);
  [[nodiscard]] std::string doubt();

  PlayerOptions options_;
  Taps taps_;
  std::vector<Lane> lanes_;
  std::vector<AirTeller> tellers_;
  Instant begun_;
  Channel channel_;
  std::array<std::optional<Nanos>, ONEHOP_GATE_DIRECTIONS> exchange_;
  LogLinearHistogram lateness_ns_;
  bool is_link_gone_ = false;
};

}  // namespace onehop::lab::air
