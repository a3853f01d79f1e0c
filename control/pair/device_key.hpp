// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DeviceKey: the Ed25519 key by which paired devices know this user on this machine.
//
//   FOLDER/device.key, mode 0600 ─▶ DeviceKey ─┬─ certificate ─▶ TLS between paired devices
//                                              ├─ sign() ─▶ receipts, introductions
//                                              └─ find_key() ─▶ answers to who looks for receivers
//
// The file names the machine that it was made on. Another machine refuses a copy of it, as from a
// backup or a cloned disk: two devices with one key could not be distinguished. A thief can change
// that line; then the other devices must forget the key.
//
// Set-up code; any thread. The curve and the certificate are OpenSSL's.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "control/pair/private_folder.hpp"
#include "engine/crypto/secret.hpp"

namespace onehop::pair {

using PublicKey = std::array<std::byte, 32>;
using Signature = std::array<std::byte, 64>;
using Seed = crypto::Secret<32>;
using FindKey = std::array<std::byte, 32>;

class DeviceKey {
 public:
  /// read: nullopt if there is no key yet. Error 8: it cannot be read, others can read it, or it
  /// was made on another machine.
  [[nodiscard]] static Result<std::optional<DeviceKey>> read(const PrivateFolder& folder);
  /// read_or_make makes a key if there is none. Two concurrent callers get the same.
  [[nodiscard]] static Result<DeviceKey> read_or_make(const PrivateFolder& folder);
  [[nodiscard]] static Result<DeviceKey> from_seed(const Seed& seed);

  [[nodiscard]] const PublicKey& public_key() const noexcept { return public_; }
  [[nodiscard]] Signature sign(std::span<const std::byte> message) const;
  /// find_key is what paired devices recognize this one's answers by (device_hello.hpp). It cannot
  /// be computed from the public key, which a receipt has.
  [[nodiscard]] const FindKey& find_key() const noexcept { return find_key_; }
  /// install makes `ssl` show the certificate of this key. False: OpenSSL refused.
  [[nodiscard]] bool install(SSL* ssl) const;

 private:
  DeviceKey() = default;
  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> certificate_;
  PublicKey public_{};
  FindKey find_key_{};
};

[[nodiscard]] bool verify(const PublicKey& key, std::span<const std::byte> message,
                          const Signature& signature);
/// key_of is the key of a certificate; nullopt: it is another kind of key.
[[nodiscard]] std::optional<PublicKey> key_of(X509* certificate);
/// fingerprint: 16 hexadecimal digits, for users and for names of files.
[[nodiscard]] std::string fingerprint(const PublicKey& key);

}  // namespace onehop::pair
