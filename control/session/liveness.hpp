// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Liveness: when one end of a connection sends a KeepAlive, and when its peer has been silent for
// too long. Pure: the caller gives the time.
#pragma once

#include <cstdint>

#include "control/session/session.hpp"

namespace onehop::session {

/// ChannelEnd: how a connection ended.
enum class ChannelEnd : std::uint8_t {
  open,
  closed_by_peer,  ///< end of stream or reset
  silent,          ///< nothing came for the limit
  violation,       ///< bytes that are no message of this protocol
  failed,          ///< a local error of the socket or of TLS
  closed_here,
};

class Liveness {
 public:
  Liveness(const SessionLimits& limits, Instant now)
      : limits_{limits}, last_received_at_{now}, last_sent_at_{now} {}

  void note_received(Instant now) noexcept { last_received_at_ = now; }
  void note_sent(Instant now) noexcept { last_sent_at_ = now; }
  [[nodiscard]] Instant last_received_at() const noexcept { return last_received_at_; }
  [[nodiscard]] bool is_silent(Instant now) const noexcept {
    return now - last_received_at_ > limits_.silent;
  }
  [[nodiscard]] bool is_keepalive_due(Instant now) const noexcept {
    return now - last_sent_at_ >= limits_.keep_alive;
  }
  /// is_early_keepalive_due: for an end that waits for an answer. On a link that loses frames TCP
  /// finds the loss of a last segment only after its timeout (200 ms before Linux 6.15), but at
  /// once when another segment follows. Shorter than 20 ms: more segments than the answer takes.
  /// Longer: no gain over the timeout.
  [[nodiscard]] bool is_early_keepalive_due(Instant now) const noexcept {
    return now - last_sent_at_ >= 20ms;
  }

 private:
  SessionLimits limits_;
  Instant last_received_at_, last_sent_at_;
};

}  // namespace onehop::session
