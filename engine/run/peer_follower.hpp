// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// PeerFollower: how the receiving loop finds a peer at another address (path_challenge.hpp): it
// reads frames from other addresses if the port has such, challenges their sender, and moves the
// port there. For a port that cannot follow it does nothing. Engine core; owned by the loop.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <utility>

#include "engine/base/message.hpp"
#include "engine/base/spsc_ring.hpp"
#include "engine/port/port.hpp"
#include "engine/run/path_challenge.hpp"
#include "engine/wire/feedback.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::run {

template <Port P>
class PeerFollower {
 public:
  /// When the peer is missing, and how often to look elsewhere. Shorter: a system call in each
  /// pause of a link. Longer: a transfer stops longer when its NAT forgets it.
  static constexpr Nanos missed_after = 250ms, look_interval = 10ms;
  static constexpr std::size_t frames_per_look_max = 8;

  PeerFollower(P& port, std::uint64_t seed) : port_{port}, challenge_{seed} {}

  /// look passes each frame from another address to `on_frame`, with its source.
  template <class OnFrame>
  void look(Instant now, OnFrame on_frame) noexcept {
    Endpoint source;
    if constexpr (requires { port_.receive_elsewhere(source); }) {
      if (now - looked_at_ < look_interval) return;
      looked_at_ = now;
      for (std::size_t i = 0; i < frames_per_look_max; ++i) {
        const std::optional<RxFrame> view = port_.receive_elsewhere(source);
        if (!view) return;
        on_frame(*view, std::optional{source});
      }
    }
  }
  /// note_source is for authentic frames; `source`: if it is known to be another address.
  void note_source(const RxFrame& view, std::optional<Endpoint> source) noexcept {
    if constexpr (requires { port_.source_elsewhere(view); })
      if (!source) source = port_.source_elsewhere(view);
    if (!source) return;
    if (challenge_.candidate() != source) heard_port_ = source->port;
    challenge_.on_frame(*source, view.bytes().size());
  }
  /// ask sends the challenge that is due; `seal` writes a PING of this id into a frame.
  template <class Seal>
  void ask(Instant now, Seal seal) noexcept {
    std::array<std::byte, wire::ping_body_bytes_min + wire::overhead_bytes> frame{};
    if constexpr (requires(const Endpoint& to) { port_.send_to(to, frame); }) {
      if (!challenge_.is_due(now, frame.size())) return;
      seal(challenge_.ask(now, frame.size()), std::span{frame});
      (void)port_.send_to(*challenge_.candidate(), frame);
    }
  }
  /// on_pong: true if it answered the challenge, and the port has moved to the peer's new address.
  [[nodiscard]] bool on_pong(std::uint64_t id) noexcept {
    const std::optional<Endpoint> peer = challenge_.on_pong(id);
    if constexpr (requires { port_.move_peer(*peer); }) {
      if (!peer || !port_.move_peer(*peer)) return false;
      moved_port_ = peer->port;
      return true;
    }
    return false;
  }
  void report(Instant now, SpscRing<Event>& events) noexcept {
    report_port(now, events, EventKind::heard_elsewhere, heard_port_);
    report_port(now, events, EventKind::peer_moved, moved_port_);
  }

 private:
  static void report_port(Instant now, SpscRing<Event>& events, EventKind kind,
                          std::uint16_t& port) noexcept {
    if (port == 0 || !events.has_room()) return;
    events.put({.kind = kind, .at = now, .value = std::exchange(port, std::uint16_t{0})});
  }

  P& port_;
  PathChallenge challenge_;
  Instant looked_at_{};
  std::uint16_t heard_port_ = 0, moved_port_ = 0;  // to report
};

}  // namespace onehop::run
