// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Digest of a block: XXH3-128 (against accidents: disk, memory, our own bugs) or SHA-256 (when the
// digest itself must be evidence). The data path is authenticated by the AEAD in either case.
//
// Pure functions, called by file threads on whole blocks; they allocate nothing and keep nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/base/block.hpp"

namespace onehop::crypto {

enum class DigestKind : std::uint8_t {
  xxh3 = 1,
  sha256 = 2
};  // the values are on the wire (exporter context)

/// digest_bytes is 16 or 32: how much of a Digest the kind fills; the rest is zero.
[[nodiscard]] constexpr std::size_t digest_bytes(DigestKind kind) noexcept {
  return kind == DigestKind::xxh3 ? 16 : 32;
}
[[nodiscard]] constexpr std::string_view digest_name(DigestKind kind) noexcept {
  return kind == DigestKind::xxh3 ? "xxh3" : "sha256";
}

/// block_digest of a whole block. XXH3-128 is in its canonical, big-endian form.
[[nodiscard]] Digest block_digest(DigestKind kind, std::span<const std::byte> block) noexcept;

}  // namespace onehop::crypto
