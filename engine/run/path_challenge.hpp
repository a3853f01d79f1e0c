// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PathChallenge: whether the peer is at another address or port than it announced.
//
//   authentic frame from elsewhere ─▶ candidate ─▶ PING with a random id, there alone
//                                                    └─ PONG of that id ─▶ the peer is there
//
// Behind NAT the peer does not know by which port its frames leave. A frame's tag does not protect
// its source: an attacker that copies a frame and is faster can put any address there. So an
// address is accepted when the peer answers, in an authentic frame, a challenge that was sent to
// that address alone. Until then it gets at most three times as many bytes as came from it. Pure:
// no socket, no clock.
//= RFC 9000 §8.2, §9.3
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <utility>

#include "engine/base/system/address.hpp"
#include "engine/base/units.hpp"

namespace onehop::run {

class PathChallenge {
 public:
  // Specification.
  static constexpr std::size_t amplification_max = 3;
  static constexpr Nanos period = 50ms;  ///< between two questions, as PINGs of a proof

  explicit PathChallenge(std::uint64_t seed) : random_{seed} {}

  /// on_frame: an authentic frame, not a replay, came from `source`, which is not the peer's
  /// address.
  void on_frame(const Endpoint& source, std::size_t bytes) noexcept {
    if (!candidate_ || *candidate_ != source) {
      candidate_ = source;
      id_ = random_();
      budget_bytes_ = 0;
      due_at_ = Instant{};
    }
    budget_bytes_ += amplification_max * bytes;
  }
  [[nodiscard]] const std::optional<Endpoint>& candidate() const noexcept { return candidate_; }
  [[nodiscard]] bool is_due(Instant now, std::size_t bytes) const noexcept {
    return candidate_ && now >= due_at_ && bytes <= budget_bytes_;
  }
  /// ask records a challenge that leaves now, and returns its id.
  std::uint64_t ask(Instant now, std::size_t bytes) noexcept {
    budget_bytes_ -= bytes;
    due_at_ = now + period;
    return id_;
  }
  /// on_pong returns the new address of the peer, once, if the pong answers the challenge.
  [[nodiscard]] std::optional<Endpoint> on_pong(std::uint64_t id) noexcept {
    if (!candidate_ || due_at_ == Instant{} || id != id_) return std::nullopt;
    return std::exchange(candidate_, std::nullopt);
  }

 private:
  std::mt19937_64 random_;
  std::optional<Endpoint> candidate_;
  std::uint64_t id_ = 0;
  std::size_t budget_bytes_ = 0;
  Instant due_at_{};  // Instant{}: the candidate was not asked yet
};

}  // namespace onehop::run
