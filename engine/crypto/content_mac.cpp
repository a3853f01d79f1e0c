// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/crypto/content_mac.hpp"

#include <array>
#include <vector>

namespace onehop::crypto {

ContentMac::ContentMac(const CompareKey& key) : key_{AeadBackend::automatic} {
  key_.set_key(key.bytes());
}

//= SP 800-38D §6.4   GMAC is GCM without a plaintext
Digest ContentMac::tag(std::span<const std::byte> content) noexcept {
  static constexpr std::array<std::byte, aead_nonce_bytes> nonce{};
  Digest tag{};
  key_.seal(nonce, content, {}, tag.data());
  return tag;
}

Digest ContentMac::zero_tag(std::uint32_t length) {
  static const std::vector<std::byte> zeros(block_bytes);
  if (length < block_bytes) return tag(std::span{zeros}.first(length));
  if (!whole_zero_block_) whole_zero_block_ = tag(zeros);
  return *whole_zero_block_;
}

}  // namespace onehop::crypto
