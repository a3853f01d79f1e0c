// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Port: the seam to the network, crossed per frame, so it is a concept and not a virtual interface.
//
//   engine core:  lend() ─▶ seal into the slot ─▶ commit() ... flush() ─▶ queue )))
//                 receive() ─▶ open from the view ─▶ release()
//
// One thread, the engine core, calls all of it. Nothing here allocates, locks, logs or blocks,
// except wait(). A full queue is not an error: lend() returns an empty span. A frame is a whole UDP
// payload; a port that builds its own L2-L4 headers leaves room for them in front of the slot.
#pragma once

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/base/message.hpp"
#include "engine/base/pieces.hpp"
#include "engine/base/telemetry.hpp"
#include "engine/base/units.hpp"

// A port of the receiving end may also follow its peer to another address, behind NAT for instance
// (engine/run/path_challenge.hpp). It then has some of:
//
//   receive_elsewhere(source)  a frame from another address, which receive() does not return
//   source_elsewhere(view)     the source of a frame of receive(), if it is not the peer
//   send_to(address, frame)    sends one frame there; false: it cannot
//   move_peer(address)         the peer's new address; false: it cannot follow there

namespace onehop {

/// RxFrame: a received datagram, lent until release(); open() reads it in place.
struct RxFrame {
  const std::byte* data = nullptr;
  std::uint32_t length = 0;  ///< at `data`; nearly always the whole datagram
  bool is_ce = false;        ///< ECN congestion experienced
  /// What follows, where the datagram came in several buffers (AF_XDP, an MTU above one chunk).
  std::span<const std::span<const std::byte>> rest{};

  [[nodiscard]] Pieces bytes() const noexcept { return {{data, length}, rest}; }
};

/// PortInfo: what the port is, fixed at start.
struct PortInfo {
  std::string_view io;    ///< "udp", "afxdp", "virtual"
  std::string_view mode;  ///< afxdp: "zero-copy", "copy", "skb"; udp: "gso", "plain", "fragments"
  std::size_t frame_bytes_max = 0;  ///< largest UDP payload it can carry, whatever the MTU
  Bytes memory{};  ///< UMEM, socket buffers, batch buffers: what it holds beside the program's heap
  Bytes wire_overhead{};           ///< L2 + IP + UDP bytes per frame: 42 or 62
  bool has_back_pressure = false;  ///< tx telemetry sees the queue that shapes the link
};

inline constexpr std::size_t rx_batch_max = 64;

template <class P>
concept Port = requires(P& port, const P& const_port, std::size_t n, std::span<RxFrame> views,
                        Instant t, const PathUpdate& update, bool flag) {
  /// lend gives the slot for the next frame of up to n bytes, or an empty span when the queue is
  /// full. Slots of one batch and equal size can be handed over in one call.
  { port.lend(n) } noexcept -> std::same_as<std::span<std::byte>>;
  /// commit accepts the lent slot with its final length: accepted = drained + occupancy from here.
  { port.commit(n) } noexcept;
  /// flush rings the doorbell for all committed frames; it may be called with none. Returns frames
  /// the port could not hand over yet: they stay accepted and are tried again at the next flush.
  { port.flush(t) } noexcept -> std::same_as<std::size_t>;
  /// receive fills up to views.size() (at most rx_batch_max), valid until release(); how many.
  { port.receive(views) } noexcept -> std::same_as<std::size_t>;
  /// release gives all views of the last receive() back.
  { port.release() } noexcept;
  /// tx_queue takes back frames that have left and reports; wire bytes (L2) of our own frames. `t`
  /// is when the turn began, which distinguishes turns. `at` of the reading is when it was made:
  /// otherwise bytes that drained since the turn began would count as drained by then.
  { port.tx_queue(t) } noexcept -> std::same_as<QueueTelemetry>;
  /// rx_ring reports the receive ring or socket in wire bytes, and refused_total as the kernel's
  /// drops. Only the loop that empties it knows whether it was backlogged.
  { port.rx_ring(t) } noexcept -> std::same_as<QueueTelemetry>;
  /// wait sleeps until `deadline`; it returns early when a frame arrived, if flag (is_rx_wanted) is
  /// set, and when wake() was called from another thread. Returns its system calls. A deadline in
  /// the past: no sleep.
  { port.wait(t, flag) } noexcept -> std::same_as<std::uint32_t>;
  /// update_path takes a new header template and MTU.
  { port.update_path(update) } noexcept;
  /// syscalls_total counts what lend .. wait made.
  { const_port.syscalls_total() } noexcept -> std::same_as<std::uint64_t>;
  { const_port.info() } noexcept -> std::same_as<PortInfo>;
  /// last_error is 0, or the errno that makes the port unusable, maybe for now (is_passing_error).
  { const_port.last_error() } noexcept -> std::same_as<int>;
};

/// is_policy_error: refusals by a rule of this host: a netfilter drop on output or an XFRM block
/// (EPERM), a reject or a prohibit route (EACCES). The session waits, and notifies its user.
[[nodiscard]] constexpr bool is_policy_error(int errno_value) noexcept {
  return errno_value == EPERM || errno_value == EACCES;
}

/// is_path_error: errors of the path: nothing leaves until the link is back, its device too
/// (ENODEV, of AF_XDP ENXIO), the route is there again, or the rule is gone.
[[nodiscard]] constexpr bool is_path_error(int errno_value) noexcept {
  return errno_value == ENETDOWN || errno_value == ENODEV || errno_value == ENXIO ||
         errno_value == ENETUNREACH || errno_value == EHOSTUNREACH ||
         errno_value == EADDRNOTAVAIL || is_policy_error(errno_value);
}

/// is_passing_error: errors that end by themselves, those of the path and frames above a lowered
/// MTU; any other ends the session. An error that stays shows as silence.
[[nodiscard]] constexpr bool is_passing_error(int errno_value) noexcept {
  return errno_value == 0 || errno_value == EMSGSIZE || is_path_error(errno_value);
}

}  // namespace onehop
