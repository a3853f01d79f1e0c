// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Digests of blocks of zeros: what both ends put into a file's tree for a hole. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/block.hpp"
#include "engine/crypto/digest.hpp"

namespace onehop::disk {

/// zero_digest is block_digest() of `length` zeros. That of whole blocks is worked out once.
[[nodiscard]] inline Digest zero_digest(crypto::DigestKind kind, std::uint32_t length) {
  const auto work_out = [](crypto::DigestKind of, std::uint32_t bytes) {
    return crypto::block_digest(of, std::vector<std::byte>(bytes));
  };
  if (length != block_bytes) return work_out(kind, length);
  static const std::array whole{work_out(crypto::DigestKind::xxh3, block_bytes),
                                work_out(crypto::DigestKind::sha256, block_bytes)};
  return whole[kind == crypto::DigestKind::xxh3 ? 0 : 1];
}

}  // namespace onehop::disk
