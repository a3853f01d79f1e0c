// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/pair/device_hello.hpp"

#include <sodium.h>

#include <algorithm>

#include "engine/crypto/sha256.hpp"

namespace onehop::pair {

namespace {

using Bytes = std::vector<std::byte>;

void append(Bytes& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}
void append(Bytes& to, std::string_view text) { append(to, std::as_bytes(std::span{text})); }

std::string_view name_of(crypto::Role role) {
  return role == crypto::Role::sender ? " sender" : " receiver";
}

HelloProof mac(std::span<const std::byte> key, const Bytes& message) {
  HelloProof made;
  crypto::hmac_sha256(key, message, made);
  return made;
}

/// Its fields have fixed sizes, but for the last.
Bytes signed_part(const Introduced& one, crypto::Role role, std::span<const std::byte> binding) {
  Bytes message;
  append(message, "onehop introduction v1");
  append(message, name_of(role));
  append(message, binding);
  append(message, one.key);
  append(message, one.find_key);
  append(message, one.name);
  return message;
}

}  // namespace

HelloProof hello_proof(const PairSecret& secret, crypto::Role role,
                       std::span<const std::byte> session_id) {
  Bytes message;
  append(message, "onehop hello");
  append(message, name_of(role));
  append(message, session_id);
  return mac(secret.bytes(), message);
}

bool is_proof(const HelloProof& one, const HelloProof& other) {
  return ::sodium_memcmp(one.data(), other.data(), one.size()) == 0;
}

FindHash find_hash(const FindKey& key, std::span<const std::byte> nonce,
                   std::span<const std::byte> instance) {
  Bytes message;
  append(message, "onehop answer");
  append(message, nonce);
  append(message, instance);
  const HelloProof whole = mac(key, message);
  FindHash hash;
  std::copy_n(whole.begin(), hash.size(), hash.begin());
  return hash;
}

KnownPeer Identity::find(const PublicKey& of) const {
  const auto at = std::ranges::find(peers, of, [](auto& peer) { return peer->key; });
  return at == peers.end() ? nullptr : *at;
}

Introduced introduce(const Identity& self, crypto::Role role, std::span<const std::byte> binding) {
  Introduced made{self.name, self.key.public_key(), self.key.find_key(), {}};
  made.signature = self.key.sign(signed_part(made, role, binding));
  return made;
}

bool is_genuine(const Introduced& other, crypto::Role role, std::span<const std::byte> binding) {
  return is_peer_name(other.name) &&
         verify(other.key, signed_part(other, role, binding), other.signature);
}

}  // namespace onehop::pair
