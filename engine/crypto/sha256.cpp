// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/crypto/sha256.hpp"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "engine/base/check.hpp"

// The replacements that OpenSSL 3.0 names (EVP_MD_CTX, EVP_MAC) allocate; the engine core must not.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace onehop::crypto {

namespace {

void update(SHA256_CTX& context, std::span<const std::byte> piece) noexcept {
  if (!piece.empty()) SHA256_Update(&context, piece.data(), piece.size());
}

// start_with_pad starts a hash with the key XOR one repeated byte (RFC 2104 section 2).
void start_with_pad(SHA256_CTX& context, std::span<const std::byte> key, std::byte pad) noexcept {
  std::array<std::byte, SHA256_CBLOCK> block;
  block.fill(pad);
  for (std::size_t i = 0; i < key.size(); ++i) block[i] ^= key[i];
  SHA256_Init(&context);
  update(context, block);
  OPENSSL_cleanse(block.data(), block.size());
}

}  // namespace

std::array<std::byte, sha256_bytes> sha256(std::span<const std::byte> first,
                                           std::span<const std::byte> second,
                                           std::span<const std::byte> third) noexcept {
  SHA256_CTX context;
  SHA256_Init(&context);
  update(context, first);
  update(context, second);
  update(context, third);
  std::array<std::byte, sha256_bytes> digest;
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &context);
  return digest;
}

void hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message,
                 std::span<std::byte, sha256_bytes> out) noexcept {
  ONEHOP_CHECK(key.size() <= SHA256_CBLOCK);
  auto* const result = reinterpret_cast<unsigned char*>(out.data());
  SHA256_CTX context;
  start_with_pad(context, key, std::byte{0x36});
  update(context, message);
  SHA256_Final(result, &context);
  start_with_pad(context, key, std::byte{0x5c});
  SHA256_Update(&context, result, sha256_bytes);
  SHA256_Final(result, &context);
  OPENSSL_cleanse(&context, sizeof context);
}

}  // namespace onehop::crypto

#pragma GCC diagnostic pop
