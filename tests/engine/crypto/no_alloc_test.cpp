// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   after construction, sealing, opening and key updates allocate nothing, in libc or
// anywhere below. Method: AllocGuard, which aborts (tests/engine/base/alloc_guard_test.cpp).
#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <optional>
#include <vector>

#include "engine/base/alloc_guard.hpp"
#include "engine/crypto/frame_sealer.hpp"

using namespace onehop::crypto;

TEST_CASE("sealing, opening, key updates and digests do not allocate", "[crypto][frames]") {
  REQUIRE(onehop::AllocGuard::is_linked());
  std::vector<std::byte> body(1428), sealed(1428 + aead_tag_bytes);
  const std::array<std::byte, 28> aad{};
  for (const AeadBackend backend :
       {AeadBackend::openssl, AeadBackend::automatic, AeadBackend::chacha20}) {
    FrameSealer sealer{DirectionSecret{}, key_interval_min, backend};
    FrameOpener opener{DirectionSecret{}, {.interval = key_interval_min, .backend = backend}};
    std::size_t opened = 0;
    std::optional<onehop::AllocGuard> guard{std::in_place};
    for (std::uint64_t number = 1; number < 2000; ++number) {
      sealer.seal(number, aad, body, sealed.data());
      opened += opener.open(number, sealer.key_phase(number), aad, sealed, body.data()) ==
                FrameOpener::Verdict::ok;
      sealed[0] ^= std::byte{1};
      opened += opener.open(number + 9000, sealer.key_phase(number + 9000), aad, sealed,
                            body.data()) == FrameOpener::Verdict::ok;
      static_cast<void>(block_digest(DigestKind::sha256, body));
      static_cast<void>(block_digest(DigestKind::xxh3, body));
    }
    guard.reset();
    CHECK(opened == 1999);
    CHECK(opener.key_updates_total() == 7);
  }
}
