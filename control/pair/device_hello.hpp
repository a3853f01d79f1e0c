// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What paired devices show each other unencrypted, so that they recognize each other and no
// stranger recognizes them. All of it is new each time: a stranger sees random bytes, and learns
// nothing from repeating them.
//
//   find_hash    in an answer, by the answering device's find key: its paired devices know it
//   hello_proof  before TLS, by the secret of the two: which device, and that both are paired
//
// Neither authenticates a peer: TLS does, whose certificates are pinned. Pure functions; any
// thread.
// functions; any thread.
#pragma once

#include <memory>
#include <vector>

#include "control/pair/peers.hpp"
#include "engine/crypto/key_schedule.hpp"

namespace onehop::pair {

using HelloProof = std::array<std::byte, 32>;
using FindHash = std::array<std::byte, 16>;

/// hello_proof is by the end of that role; both ends contributed fresh bytes to `session_id`.
[[nodiscard]] HelloProof hello_proof(const PairSecret& secret, crypto::Role role,
                                     std::span<const std::byte> session_id);
/// is_proof compares in constant time.
[[nodiscard]] bool is_proof(const HelloProof& one, const HelloProof& other);

/// find_hash of an answer: `nonce` is the question's, `instance` the receiver's of this run. So a
/// question that is repeated to another run does not identify the same device.
[[nodiscard]] FindHash find_hash(const FindKey& key, std::span<const std::byte> nonce,
                                 std::span<const std::byte> instance);

using KnownPeer = std::shared_ptr<const Peer>;  ///< null: not a known device

/// Identity: what one end brings to its sessions: its key, the name it introduces itself by, and
/// the devices that it knows now. Devices come and go while it runs; a session keeps its own one.
struct Identity {
  DeviceKey key;
  std::string name;
  std::vector<KnownPeer> peers;

  [[nodiscard]] KnownPeer find(const PublicKey& of) const;
};

/// Introduced: what an end sends about itself at a pairing. `signature` proves the key, on this
/// connection alone.
struct Introduced {
  std::string name;  ///< empty: this end does not want to be paired
  PublicKey key{};
  FindKey find_key{};
  Signature signature{};
};

/// introduce makes this end's, is_genuine checks the other's. `binding` is the connection's.
[[nodiscard]] Introduced introduce(const Identity& self, crypto::Role role,
                                   std::span<const std::byte> binding);
[[nodiscard]] bool is_genuine(const Introduced& other, crypto::Role role,
                              std::span<const std::byte> binding);

}  // namespace onehop::pair
