// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   after construction, sealing, opening and key updates allocate nothing, in libc or
// anywhere below. Method: this program's malloc, calloc, realloc and free count their calls on the
// thread under test. Bounds: zero.
#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "engine/crypto/frame_sealer.hpp"
#include "engine/crypto/tree.hpp"

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void __libc_free(void*);
}
namespace {
thread_local std::size_t calls_total = 0;
}
extern "C" {
void* malloc(std::size_t size) {
  ++calls_total;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  ++calls_total;
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  ++calls_total;
  return __libc_realloc(old, size);
}
void free(void* memory) {
  ++calls_total;
  __libc_free(memory);
}
}

using namespace onehop::crypto;

TEST_CASE("sealing, opening, key updates and digests do not allocate", "[crypto][frames]") {
  const auto before_probe = calls_total;
  static void* (*volatile allocate)(std::size_t) = std::malloc;
  std::free(allocate(10));
  REQUIRE(calls_total == before_probe + 2);  // the counter counts

  std::vector<std::byte> body(1428), sealed(1428 + aead_tag_bytes);
  const std::array<std::byte, 28> aad{};
  for (const AeadBackend backend : {AeadBackend::openssl, AeadBackend::automatic}) {
    FrameSealer sealer{DirectionSecret{}, key_interval_min, backend};
    FrameOpener opener{DirectionSecret{}, {.interval = key_interval_min, .backend = backend}};
    DigestTree tree{DigestKind::sha256};
    std::size_t opened = 0;
    const auto before = calls_total;
    for (std::uint64_t number = 1; number < 2000; ++number) {
      sealer.seal(number, aad, body, sealed.data());
      opened += opener.open(number, sealer.key_phase(number), aad, sealed, body.data()) ==
                FrameOpener::Verdict::ok;
      sealed[0] ^= std::byte{1};
      opened += opener.open(number + 9000, sealer.key_phase(number + 9000), aad, sealed,
                            body.data()) == FrameOpener::Verdict::ok;
      tree.add(block_digest(DigestKind::sha256, body));
      tree.add(block_digest(DigestKind::xxh3, body));
    }
    const auto after = calls_total;
    CHECK(after - before == 0);
    CHECK(opened == 1999);
    CHECK(opener.key_updates_total() == 7);
  }
}
