// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What paired devices show each other in the open, so that they are known to each other and to
// nobody else. All of it is new each time: a stranger sees random bytes, and learns nothing from
// repeating them.
//
//   find_hash    in an answer, by the answering device's find key: its paired devices know it
//   hello_proof  before TLS, by the secret of the two: which device this is, and that we know it
//
// Neither is an identity. Who is there is proven by TLS, whose certificates are pinned. Pure
// functions; any thread.
#pragma once

#include <memory>
#include <vector>

#include "control/pair/peers.hpp"
#include "engine/crypto/key_schedule.hpp"

namespace onehop::pair {

using HelloProof = std::array<std::byte, 32>;
using FindHash = std::array<std::byte, 16>;

/// hello_proof is by the end of that role; `session_id` is fresh of both ends.
[[nodiscard]] HelloProof hello_proof(const PairSecret& secret, crypto::Role role,
                                     std::span<const std::byte> session_id);
/// is_proof compares in constant time.
[[nodiscard]] bool is_proof(const HelloProof& one, const HelloProof& other);

/// find_hash of an answer: `nonce` is the question's, `instance` the receiver's of this run. So
/// whoever repeats a question to another run does not find the same device again.
[[nodiscard]] FindHash find_hash(const FindKey& key, std::span<const std::byte> nonce,
                                 std::span<const std::byte> instance);

using KnownPeer = std::shared_ptr<const Peer>;  ///< null: nobody that is known

/// Identity: what one end brings to its sessions: its key, by what name it introduces itself, and
/// which devices it knows now. Devices come and go while it runs; a session keeps the one that it
/// is with.
struct Identity {
  DeviceKey key;
  std::string name;
  std::vector<KnownPeer> peers;

  [[nodiscard]] KnownPeer find(const PublicKey& of) const;
};

/// Introduced: what an end tells of itself at a pairing. `signature` proves the key, on this
/// connection alone.
struct Introduced {
  std::string name;  ///< empty: this end does not want to be known
  PublicKey key{};
  FindKey find_key{};
  Signature signature{};
};

/// introduce makes this end's, and is_genuine checks the other's. `binding` is the connection's.
[[nodiscard]] Introduced introduce(const Identity& self, crypto::Role role,
                                   std::span<const std::byte> binding);
[[nodiscard]] bool is_genuine(const Introduced& other, crypto::Role role,
                              std::span<const std::byte> binding);

}  // namespace onehop::pair
