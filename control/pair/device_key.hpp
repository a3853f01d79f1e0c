// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DeviceKey: the Ed25519 key by which paired devices know this user on this machine.
//
//   FOLDER/device.key, mode 0600 ─▶ DeviceKey ─┬─ certificate ─▶ TLS between paired devices
//                                              ├─ sign() ─▶ receipts, introductions
//                                              └─ find_key() ─▶ answers to who looks for receivers
//
// The file names the machine that it was made on. A copy of it, as a backup or a cloned disk makes
// one, is refused on another machine: two devices with one key could not be told apart. Whoever
// means to steal a key can change that line: then the other devices have to forget it.
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
  /// read: nothing where there is no key yet. Error 8: it cannot be had, others can read it, or it
  /// was made on another machine.
  [[nodiscard]] static Result<std::optional<DeviceKey>> read(const PrivateFolder& folder);
  /// read_or_make makes one where there is none. Two that do so at once get the same.
  [[nodiscard]] static Result<DeviceKey> read_or_make(const PrivateFolder& folder);
  [[nodiscard]] static Result<DeviceKey> from_seed(const Seed& seed);

  [[nodiscard]] const PublicKey& public_key() const noexcept { return public_; }
  [[nodiscard]] Signature sign(std::span<const std::byte> message) const;
  /// find_key is what paired devices know this one's answers by (device_hello.hpp). It does not
  /// follow from the public key, which a receipt has.
  [[nodiscard]] const FindKey& find_key() const noexcept { return find_key_; }
  /// install has `ssl` show the certificate of this key. False: OpenSSL refused.
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
/// key_of is the key of a certificate; nothing: it is another kind of key.
[[nodiscard]] std::optional<PublicKey> key_of(X509* certificate);
/// fingerprint: 16 hexadecimal digits, for people and for names of files.
[[nodiscard]] std::string fingerprint(const PublicKey& key);

}  // namespace onehop::pair
