// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// CPace: two ends that share a short password agree on a long key, in one message each.
//
//   password, channel identifier, session id ─▶ generator g, a point of the group ristretto255
//   initiator: Ya = ya * g ─▶         responder: Yb = yb * g ─▶         K = ya * Yb = yb * Ya
//   ISK = SHA-512(session id, K, Ya and what its end says, Yb and what its end says)
//
// An observer without the password sees two points that look random, and learns nothing to test
// guesses with later. A participant with a guess tests that one alone. An ISK proves nothing yet:
// both ends have to show that they have the same.
//
// This is the suite CPACE-RISTR255-SHA512 of draft-irtf-cfrg-cpace-21. The group and the hash are
// libsodium's, in constant time; nothing here branches on a secret but on the password's length.
// Pure functions but for begin(). Any thread; not for the engine core.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/crypto/secret.hpp"

namespace onehop::crypto {

inline constexpr std::size_t cpace_point_bytes = 32, cpace_key_bytes = 64;

using CpacePoint = std::array<std::byte, cpace_point_bytes>;
using CpaceScalar = Secret<32>;
using CpaceKey = Secret<cpace_key_bytes>;  ///< ISK; its hash is what a protocol's keys come from

/// What both ends know before their messages.
struct CpaceInput {
  std::span<const std::byte> password;    ///< PRS
  std::span<const std::byte> channel;     ///< CI: the two parties, the initiator first
  std::span<const std::byte> session_id;  ///< sid, fresh of both
};

/// What an end sends: its point and, in the open, what it says of itself (AD).
struct CpaceMessage {
  CpacePoint point;
  std::span<const std::byte> said;
};

/// cpace_multiply is the draft's scalar_mult_vfy(); false for bytes that are no point, and where
/// the product is the neutral element.
[[nodiscard]] bool cpace_multiply(const CpaceScalar& scalar, const CpacePoint& point,
                                  std::span<std::byte, cpace_point_bytes> product) noexcept;
/// is_cpace_point takes a hundredth of the time of a multiplication.
[[nodiscard]] bool is_cpace_point(const CpacePoint& point) noexcept;

/// Cpace is one end between its own message and the other's.
class Cpace {
 public:
  /// begin draws a scalar. Syscalls: getrandom.
  [[nodiscard]] static Cpace begin(const CpaceInput& input);
  /// with_scalar is for test vectors: a scalar that is used twice gives the password away.
  [[nodiscard]] static Cpace with_scalar(const CpaceInput& input, const CpaceScalar& scalar);

  [[nodiscard]] const CpacePoint& point() const noexcept { return point_; }

  /// key_of_initiator and key_of_responder return the ISK; nullopt: the other end's point is not
  /// valid.
  [[nodiscard]] std::optional<CpaceKey> key_of_initiator(std::span<const std::byte> said,
                                                         const CpaceMessage& responder) const;
  [[nodiscard]] std::optional<CpaceKey> key_of_responder(std::span<const std::byte> said,
                                                         const CpaceMessage& initiator) const;

 private:
  Cpace() = default;
  [[nodiscard]] CpaceKey hash_of(const Secret<cpace_point_bytes>& shared,
                                 const CpaceMessage& initiator,
                                 const CpaceMessage& responder) const noexcept;

  std::vector<std::byte> session_id_;
  CpaceScalar scalar_;
  CpacePoint point_{};
};

/// The draft's generator, for its vectors.
[[nodiscard]] CpacePoint cpace_generator(const CpaceInput& input) noexcept;

}  // namespace onehop::crypto
