// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/crypto/digest.hpp"

#include <xxhash.h>
#ifdef ONEHOP_HAS_XXH_DISPATCH
// XXH3_128bits is then the widest kernel that this CPU has, not the baseline's.
#include <xxh_x86dispatch.h>
#endif

#include <algorithm>
#include <cstring>

#include "engine/crypto/sha256.hpp"

namespace onehop::crypto {

Digest block_digest(DigestKind kind, std::span<const std::byte> block) noexcept {
  Digest digest{};
  if (kind == DigestKind::xxh3) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(block.data(), block.size()));
    static_assert(sizeof canonical.digest == digest_bytes(DigestKind::xxh3));
    std::memcpy(digest.data(), canonical.digest, sizeof canonical.digest);
  } else {
    std::ranges::copy(sha256(block), digest.begin());
  }
  return digest;
}

}  // namespace onehop::crypto
