// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PathWatch: what a loop knows of its path, and what it reports to the session: how the proof
// ended, a rule of this host that refuses our frames, and that the peer is alive. (TCP cannot say
// that: its retransmissions may be seconds apart on a link that comes and goes.)
//
//   proof:  PINGs of full size ──▶ one is answered: path_proven
//                              └─▶ none is: path_dead
//
// When no frame at all came from the peer, the proof fails after proof_limit and proof_pings_min
// PINGs. When some came, after proof_limit_max: the peer is late, or the path bad. Each loop owns
// one. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/base/message.hpp"
#include "engine/base/units.hpp"
#include "engine/port/port.hpp"

namespace onehop::run {

class PathWatch {
 public:
  // Specification. PINGs of a proof leave 50 ms apart, so 40 are two seconds. Fewer: a core with
  // one turn a second gives up after two. At 40 % loss each way all 40 fail once in 10^7.
  static constexpr Nanos proof_limit = 2s, proof_limit_max = 10s;
  static constexpr std::uint64_t proof_pings_min = 40;
  /// Between two events peer_heard. The session ends after 30 s without one.
  static constexpr Nanos alive_period = 1s;

  /// Now: what the loop counts, at the end of a turn.
  struct Now {
    Instant at{};
    bool is_proven = false;
    std::size_t proven_frame_bytes = 0;
    std::uint64_t pings_sent = 0, frames_received = 0;
    int port_error = 0;
  };

  void on_update(const PathUpdate& update) noexcept { is_link_up_ = update.is_link_up; }
  [[nodiscard]] bool is_link_up() const noexcept { return is_link_up_; }
  void start_proof(const Now& now) noexcept { proof_ = now; }

  /// next_event is what is to be reported now; the end of a proof and a refusal once each.
  [[nodiscard]] std::optional<Event> next_event(const Now& now) noexcept {
    if (proof_ && (now.is_proven || has_failed(now))) {
      proof_.reset();
      return Event{.kind = now.is_proven ? EventKind::path_proven : EventKind::path_dead,
                   .at = now.at,
                   .value = now.proven_frame_bytes};
    }
    if (!has_reported_refusal_ && is_policy_error(now.port_error)) {
      has_reported_refusal_ = true;
      return Event{.kind = EventKind::port_refused,
                   .at = now.at,
                   .value = static_cast<std::uint64_t>(now.port_error)};
    }
    if (now.frames_received > frames_received_ && now.at - reported_alive_at_ >= alive_period) {
      frames_received_ = now.frames_received;
      reported_alive_at_ = now.at;
      return Event{.kind = EventKind::peer_heard, .at = now.at};
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] bool has_failed(const Now& now) const noexcept {
    const Nanos span = now.at - proof_->at;
    if (span >= proof_limit_max) return true;
    const bool has_received = now.frames_received > proof_->frames_received;
    return span >= proof_limit && now.pings_sent - proof_->pings_sent >= proof_pings_min &&
           !has_received;
  }

  bool is_link_up_ = true, has_reported_refusal_ = false;
  std::optional<Now> proof_;
  std::uint64_t frames_received_ = 0;
  Instant reported_alive_at_{};
};

}  // namespace onehop::run
