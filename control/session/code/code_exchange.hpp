// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// CodeExchange: what both ends send before TLS to turn the code into a key for this connection
// alone. CPace (engine/crypto/cpace.hpp); the sender is the initiator.
//
//   sender   ─ tag, 16 fresh bytes ─────────────────▶
//   receiver ◀───────── tag, 16 fresh bytes, codes burnt
//   sender   ─ point, what it says of itself ───────▶   both have the PSK of TLS now; nothing is
//   receiver ◀───────── point, what it says of itself   proven yet
//   sender   ─ ClientHello with a binder of that PSK ▶
//
// The binder is the sender's one guess, and its proof; until then the receiver has sent nothing
// that depends on the code. The receiver's Finished proves the receiver. The roles are in the
// channel identifier, so a reflected message proves nothing. Each end states its version, the suite
// and the address by which it knows itself; that goes into the key as it was received. Addresses
// cannot be in the channel identifier, because a NAT changes them. Nothing is negotiated.
//
// It does no I/O. Its input is not authenticated: sizes are fixed or bounded, and the two
// multiplications of a connection happen only after a valid point.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/session/code/code.hpp"
#include "engine/base/system/address.hpp"
#include "engine/crypto/cpace.hpp"
#include "engine/crypto/key_schedule.hpp"

namespace onehop::session {

using crypto::Role;

inline constexpr std::size_t exchange_tag_bytes = 8, exchange_nonce_bytes = 16;
inline constexpr std::size_t exchange_greeting_bytes =
    exchange_tag_bytes + exchange_nonce_bytes + 1;
inline constexpr std::size_t exchange_head_bytes = crypto::cpace_point_bytes + 1;
inline constexpr std::size_t exchange_said_bytes_max = 255;

/// The last byte of the greeting of a sender that is a paired device (channel_handshake.cpp): no
/// code is exchanged then.
inline constexpr std::size_t greeting_of_device = 1;

using SessionPsk = crypto::Secret<32>;  ///< the external PSK of one connection
using ExchangeGreeting = std::array<std::byte, exchange_greeting_bytes>;
using ExchangeHead = std::array<std::byte, exchange_head_bytes>;

/// is_exchange_tag: an end of this protocol begins so; for any other, waiting for more is useless.
[[nodiscard]] bool is_exchange_tag(std::span<const std::byte, exchange_tag_bytes> bytes) noexcept;

class CodeExchange {
 public:
  /// It draws this end's part of the session id. `burnt`: how many codes a receiver had before its
  /// present one; of a sender, greeting_of_device or 0. Syscalls: getrandom, here and in message().
  CodeExchange(Role role, std::size_t burnt);
  [[nodiscard]] const ExchangeGreeting& greeting() const noexcept { return greeting_; }
  /// take_greeting: false if it is not valid.
  [[nodiscard]] bool take_greeting(const ExchangeGreeting& theirs) noexcept;
  [[nodiscard]] std::size_t peer_burnt() const noexcept { return peer_burnt_; }
  /// session_id has fresh bytes of both ends, after take_greeting().
  [[nodiscard]] std::span<const std::byte> session_id() const noexcept { return session_id_; }

  /// message is what this end sends second: its point and what it says of itself, once for each
  /// exchange. From then on the key is made with `code`.
  [[nodiscard]] std::vector<std::byte> message(const PairingCode& code, const Endpoint& self);
  /// take_message returns the PSK, after message(); nullopt: the point is not valid.
  [[nodiscard]] std::optional<SessionPsk> take_message(const ExchangeHead& head,
                                                       std::span<const std::byte> said) const;
  [[nodiscard]] static std::size_t said_bytes(const ExchangeHead& head) noexcept {
    return std::to_integer<std::size_t>(head.back());
  }
  [[nodiscard]] static crypto::CpacePoint point_of(const ExchangeHead& head) noexcept;

 private:
  [[nodiscard]] bool is_sender() const noexcept { return role_ == Role::sender; }

  const Role role_;
  ExchangeGreeting greeting_{};
  std::array<std::byte, 2 * exchange_nonce_bytes> session_id_{};  // the sender's half first
  std::string said_;
  std::optional<crypto::Cpace> cpace_;
  std::size_t peer_burnt_ = 0;
};

}  // namespace onehop::session
