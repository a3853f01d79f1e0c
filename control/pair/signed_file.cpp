// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/pair/signed_file.hpp"

#include <vector>

#include "engine/base/check.hpp"

namespace onehop::pair {

namespace {

/// A signature says what it is for, so that no other one of this key can stand in for it.
std::vector<std::byte> text_of_hash(std::span<const std::byte, 32> hash) {
  constexpr std::string_view use = "onehop receipt signature v1";
  const auto words = std::as_bytes(std::span{use});
  std::vector<std::byte> text{words.begin(), words.end()};
  text.insert(text.end(), hash.begin(), hash.end());
  return text;
}

}  // namespace

RunningHash::RunningHash() : context_{::EVP_MD_CTX_new(), &::EVP_MD_CTX_free} {
  ONEHOP_CHECK(context_ != nullptr);
  ONEHOP_CHECK(::EVP_DigestInit_ex(context_.get(), ::EVP_sha256(), nullptr) == 1);
}

void RunningHash::update(std::span<const std::byte> piece) {
  if (is_finished_) return;
  ONEHOP_CHECK(::EVP_DigestUpdate(context_.get(), piece.data(), piece.size()) == 1);
}

std::array<std::byte, 32> RunningHash::finish() {
  std::array<std::byte, 32> hash{};
  is_finished_ = true;
  ONEHOP_CHECK(::EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(hash.data()),
                                    nullptr) == 1);
  return hash;
}

Signature sign_hash(const DeviceKey& signer, std::span<const std::byte, 32> hash) {
  return signer.sign(text_of_hash(hash));
}

bool is_signed(const PublicKey& key, std::span<const std::byte, 32> hash,
               const Signature& signature) {
  return verify(key, text_of_hash(hash), signature);
}

}  // namespace onehop::pair
