// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LoopBase: what the loops of both ends share.
//
//   commands ─▶ follow_path(): a new header, MTU or link state
//   frames   ─▶ decode(), open() ─▶ body in scratch memory         seal() ─▶ port
//   events   ◀─ report_once(), report_path(), fail(), close_if_finishing()
//   report   ◀─ publish()
//
// It also watches the path, and reports how the proof ended, a rule of this host that refuses our
// frames, and that the peer is alive. (TCP cannot say that: its retransmissions may be seconds
// apart on a link that comes and goes.)
//
//   proof:  PINGs of full size ──▶ one is answered: path_proven
//                              └─▶ none is: path_dead
//
// When no frame at all came from the peer, the proof fails after proof_limit and proof_pings_min
// PINGs. When some came, after proof_limit_max: the peer is late, or the path bad.
//
// Engine core. It allocates nothing after construction, takes no lock and waits for nothing.
#pragma once

#include <optional>
#include <span>
#include <utility>

#include "engine/port/port.hpp"
#include "engine/protocol/ping_schedule.hpp"
#include "engine/run/links.hpp"
#include "engine/run/packet_protection.hpp"
#include "engine/wire/feedback.hpp"

namespace onehop::run {

/// Phase: how far a session is. It only moves forward.
enum class Phase : std::uint8_t {
  idle,       ///< before Command start; the path is proven here
  flowing,    ///< file data may flow
  finishing,  ///< Command finish has come; the last event waits for room
  closed,     ///< the last event is out: turn() is not called again
};

/// fitted gives the parameters of a sender or receiver whose frames have at most `frame_bytes`.
template <class Params>
[[nodiscard]] Params fitted(Params params, std::size_t frame_bytes) noexcept {
  params.body_bytes_max = frame_bytes - wire::overhead_bytes;
  return params;
}

template <Port P>
class LoopBase {
 public:
  /// Longest sleep, so that commands and the file thread need no wake-up.
  static constexpr Nanos idle_max = 5ms;
  // Specification. PINGs of a proof leave 50 ms apart, so 40 are two seconds. Fewer: a core with
  // one turn a second gives up after two. At 40 % loss each way all 40 fail once in 10^7.
  static constexpr Nanos proof_limit = 2s, proof_limit_max = 10s;
  static constexpr std::uint64_t proof_pings_min = 40;
  /// Between two events peer_heard. The session ends after 30 s without one.
  static constexpr Nanos alive_period = 1s;

  [[nodiscard]] bool is_closed() const noexcept { return phase_ == Phase::closed; }
  [[nodiscard]] const DataPathCounters& counters() const noexcept { return counters_; }
  /// count_wakeup: the port's wait has returned.
  void count_wakeup() noexcept { ++counters_.wakeups_total; }

 protected:
  LoopBase(P& port, const SessionKeys& keys, EngineLinks links)
      : port_{port}, protection_{keys}, links_{links}, info_{port.info()} {}

  // --- commands
  void follow_path(const PathUpdate& path) noexcept {
    port_.update_path(path);
    info_ = port_.info();  // on another interface it may see less of the queue
    if (std::exchange(is_link_up_, path.is_link_up) != path.is_link_up) ++link_changes_total_;
  }
  [[nodiscard]] std::size_t ip_udp_bytes() const noexcept {
    constexpr std::size_t ethernet_bytes = 14;
    return static_cast<std::size_t>(info_.wire_overhead.count) - ethernet_bytes;
  }

  // --- frames
  /// decode reads the header of a frame; a frame that cannot be ours is counted.
  [[nodiscard]] std::optional<wire::FrameHeader> decode(Pieces frame) noexcept {
    auto header = wire::decode_header(frame.first);
    if (header && frame.size() <= protection_.scratch().size()) return header;
    ++counters_.malformed_total;
    return std::nullopt;
  }
  /// open authenticates a frame into `target` and counts it.
  [[nodiscard]] bool open(const wire::FrameHeader& header, Pieces frame,
                          std::byte* target) noexcept {
    if (!protection_.open(header, frame, target, counters_)) return false;
    ++counters_.frames_received_total;
    return true;
  }
  /// open_to_scratch gives an authentic body that is no file data, until scratch is used again.
  [[nodiscard]] std::optional<std::span<const std::byte>> open_to_scratch(
      const wire::FrameHeader& header, Pieces frame) noexcept {
    const std::span<std::byte> scratch = protection_.scratch();
    if (!open(header, frame, scratch.data())) return std::nullopt;
    return scratch.first(frame.size() - wire::overhead_bytes);
  }
  /// checked counts a body that could not be decoded.
  template <class Body>
  [[nodiscard]] std::optional<Body> checked(std::optional<Body> body) noexcept {
    if (!body) ++counters_.malformed_total;
    return body;
  }
  /// seal writes a frame into a slot that the port lent, commits it and returns its length.
  std::size_t seal(wire::FrameHeader& header, std::span<const std::byte> body,
                   std::span<std::byte> slot) noexcept {
    const std::size_t length = protection_.seal(header, body, slot);
    port_.commit(length);
    ++counters_.frames_sent_total;
    return length;
  }

  // --- events
  /// report_once puts an event that is due once in a session; without room the next turn does.
  void report_once(const Event& event) noexcept {
    const std::uint32_t bit = 1U << static_cast<unsigned>(event.kind);
    if ((reported_kinds_ & bit) != 0 || !links_.events.has_room()) return;
    reported_kinds_ |= bit;
    links_.events.put(event);
  }
  void report_first_data() noexcept {
    if (first_data_at_ != Instant{})
      report_once({.kind = EventKind::first_data, .at = first_data_at_});
  }
  void start_proof(Instant now, const protocol::PingSchedule& pings) noexcept {
    proof_ = {.begun_at = now,
              .pings_before = pings.id(),
              .frames_before = counters_.frames_received_total};
  }
  [[nodiscard]] bool is_proving() const noexcept { return proof_.has_value(); }
  /// report_path puts at most one event in a turn: the end of a proof and a refusal once each.
  void report_path(Instant now, const protocol::PingSchedule& pings) noexcept {
    // Nothing can come back over a link that is down: the proof begins at its return.
    if (proof_ && !is_link_up_) start_proof(now, pings);
    if (!links_.events.has_room()) return;
    const std::uint64_t frames = counters_.frames_received_total;
    const int error = port_.last_error();
    if (proof_ && (pings.is_proven() || has_proof_failed(now, pings))) {
      proof_.reset();
      links_.events.put({.kind = pings.is_proven() ? EventKind::path_proven : EventKind::path_dead,
                         .at = now,
                         .value = pings.proven_frame_bytes()});
    } else if (!has_reported_refusal_ && is_policy_error(error)) {
      has_reported_refusal_ = true;
      links_.events.put(
          {.kind = EventKind::port_refused, .at = now, .value = static_cast<std::uint64_t>(error)});
    } else if (frames > reported_frames_ && now - reported_alive_at_ >= alive_period) {
      reported_frames_ = frames;
      reported_alive_at_ = now;
      links_.events.put({.kind = EventKind::peer_heard, .at = now});
    }
  }
  /// can_fail: no failure was reported yet, and there is room for one.
  [[nodiscard]] bool can_fail() noexcept { return !has_failed_ && links_.events.has_room(); }
  /// fail reports what ends the session. The loop goes on until Command finish.
  void fail(const Event& event) noexcept {
    has_failed_ = true;
    links_.events.put(event);
  }
  void fail_if_port_failed(Instant now) noexcept {
    const int error = port_.last_error();
    if (is_passing_error(error)) return;
    fail({.kind = EventKind::port_failed, .at = now, .value = static_cast<std::uint64_t>(error)});
  }
  void close_if_finishing(Instant now) noexcept {
    if (phase_ != Phase::finishing || !links_.events.has_room()) return;
    links_.events.put({.kind = EventKind::closed, .at = now});
    phase_ = Phase::closed;
  }

  // --- report
  void publish(PathReport& report) noexcept {
    counters_.syscalls_total = port_.syscalls_total();
    counters_.key_updates_total = protection_.key_updates_total();
    report.counters = counters_;
    // What a port drops as no frame at all has not come to the loop.
    if constexpr (requires { port_.malformed_total(); })
      report.counters.malformed_total += port_.malformed_total();
    links_.report.store(report);
  }

  P& port_;
  PacketProtection protection_;
  EngineLinks links_;
  PortInfo info_;
  DataPathCounters counters_;
  wire::Feedback feedback_;  // the frame that is read or built now
  Instant first_data_at_{};  // Instant{}: none yet
  Phase phase_ = Phase::idle;
  bool is_link_up_ = true;
  std::uint64_t link_changes_total_ = 0;

 private:
  struct Proof {
    Instant begun_at{};
    std::uint64_t pings_before = 0, frames_before = 0;
  };

  [[nodiscard]] bool has_proof_failed(Instant now,
                                      const protocol::PingSchedule& pings) const noexcept {
    const Nanos span = now - proof_->begun_at;
    if (span >= proof_limit_max) return true;
    return span >= proof_limit && pings.id() - proof_->pings_before >= proof_pings_min &&
           counters_.frames_received_total == proof_->frames_before;
  }

  std::optional<Proof> proof_;
  std::uint64_t reported_frames_ = 0;  // received by reported_alive_at_
  Instant reported_alive_at_{};
  std::uint32_t reported_kinds_ = 0;  // a bit per EventKind
  bool has_failed_ = false, has_reported_refusal_ = false;
};

}  // namespace onehop::run
