// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Signatures of files that are written in one go, as receipts are (docs/receipt.md).
//
//   { ..., "device_key": "HEX"          all bytes up to here are hashed, and the hash is signed
//   , "signature": "HEX" }
#pragma once

#include <openssl/evp.h>

#include <memory>
#include <string_view>

#include "control/pair/device_key.hpp"

namespace onehop::pair {

/// The text after the last signed byte.
inline constexpr std::string_view signature_mark = ",\n\"signature\": \"";

/// RunningHash is the SHA-256 of consecutive pieces. After finish() it takes no more.
class RunningHash {
 public:
  RunningHash();
  void update(std::span<const std::byte> piece);
  [[nodiscard]] std::array<std::byte, 32> finish();

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
  bool is_finished_ = false;
};

[[nodiscard]] Signature sign_hash(const DeviceKey& signer, std::span<const std::byte, 32> hash);
[[nodiscard]] bool is_signed(const PublicKey& key, std::span<const std::byte, 32> hash,
                             const Signature& signature);

}  // namespace onehop::pair
