// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Key schedule, SHA-256, HMAC, and what keeps secrets in the process.
#include "engine/crypto/key_schedule.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <functional>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "engine/crypto/sha256.hpp"
#include "tests/engine/base/child.hpp"
#include "tests/engine/crypto/hex.hpp"

using namespace onehop::crypto;
using onehop::test::array_from_hex;
using onehop::test::from_hex;
using onehop::test::to_hex;

namespace {
std::string hmac_hex(const std::vector<std::byte>& key, std::string_view message) {
  std::array<std::byte, sha256_bytes> out{};
  hmac_sha256(key, std::as_bytes(std::span{message}), out);
  return to_hex(out);
}
std::string expand_hex(std::string_view secret, std::string_view label, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  hkdf_expand_label(from_hex(secret), label, {}, out);
  return to_hex(out);
}
ExporterSecret exporter(std::uint8_t fill) {
  ExporterSecret secret;
  for (auto& b : secret.writable()) b = static_cast<std::byte>(fill);
  return secret;
}
std::string key_hex(const FrameKey& key) {
  return to_hex(key.key.bytes().first(aead_key_bytes)) + to_hex(key.iv.bytes());
}
}  // namespace

//= RFC 4231 §4.2 type=test
//= RFC 4231 §4.3 type=test
TEST_CASE("hmac-sha256 gives the RFC's values", "[crypto][key_schedule]") {
  CHECK(hmac_hex(std::vector<std::byte>(20, std::byte{0x0b}), "Hi There") ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hmac_hex(from_hex("4a656665"), "what do ya want for nothing?") ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

//= RFC 9001 §A.1 type=test
//= RFC 9001 §A.5 type=test
TEST_CASE("expand-label and nonce give the values of RFC 9001's appendix",
          "[crypto][key_schedule]") {
  CHECK(expand_hex("7db5df06e7a69e432496adedb00851923595221596ae2ae9fb8115c1e9ed0a44", "client in",
                   32) == "c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea");
  const char* const client = "c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea";
  CHECK(expand_hex(client, "quic key", 16) == "1f369613dd76d5467730efcbe3b1a22d");
  CHECK(expand_hex(client, "quic iv", 12) == "fa044b2f42a3fd3b46fb255c");
  CHECK(to_hex(nonce_of(array_from_hex<12>("e0459b3474bdd0e44a41c144"), 654360564)) ==
        "e0459b3474bdd0e46d417eb0");
}

TEST_CASE("N1 directions, queues and generations have keys of their own",
          "[crypto][key_schedule]") {
  std::set<std::string> seen;
  std::size_t made = 0;
  for (const std::uint8_t fill : {std::uint8_t{1}, std::uint8_t{2}})
    for (const Direction direction : {Direction::from_sender, Direction::from_receiver})
      for (const std::uint16_t queue : {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{256}})
        for (const std::uint64_t generation : {0ULL, 1ULL, 256ULL, 1ULL << 40, ~0ULL}) {
          seen.insert(key_hex(frame_key(direction_secret(exporter(fill), direction, queue),
                                        generation, aead_key_bytes)));
          ++made;
        }
  CHECK(seen.size() == made);
  const auto again = direction_secret(exporter(1), Direction::from_sender, 0);
  CHECK(seen.count(key_hex(frame_key(again, 0, aead_key_bytes))) == 1);
}

TEST_CASE("key schedule: this protocol version's derivation does not change",
          "[crypto][key_schedule]") {
  // Written down from HMAC-SHA256 of the documented info string by Python's hmac module.
  const auto secret = direction_secret(exporter(0x42), Direction::from_sender, 3);
  CHECK(to_hex(secret.bytes()) ==
        "968d6d8f76f6e1ced6e089d57691abfbd36b16fac03759d2b24cb21139e35abb");
  CHECK(key_hex(frame_key(secret, 0x0102030405060708, aead_key_bytes)) ==
        "16ced5702c4562f927d1345481e69ba76138fb898d6e3a6dfd8b8121");
  const FrameKey longer = frame_key(secret, 0x0102030405060708, chacha20_key_bytes);
  CHECK(to_hex(longer.key.bytes()) ==
        "0830b60f5c9ccd6d2321f1b96936bb748a57b9478152f8172402778f13aca6ce");
  CHECK(to_hex(longer.iv.bytes()) == "6138fb898d6e3a6dfd8b8121");
}

TEST_CASE("K4 K5 every field of the exporter context changes it", "[crypto][key_schedule]") {
  const std::function<void(ExporterContext&)> changes[] = {
      [](auto&) {},
      [](auto& c) { c.version += 1; },
      [](auto& c) { c.aead = 0x1302; },
      [](auto& c) { c.digest = DigestKind::sha256; },
      [](auto& c) { c.block_bytes *= 2; },
      [](auto& c) { c.key_interval /= 2; },
      [](auto& c) { c.queue_count = 2; },
      [](auto& c) { c.client_role = Role::receiver; },  // K5: the same end in the other role
      [](auto& c) { c.session_id[0] = std::byte{1}; },
      [](auto& c) { c.session_id[15] = std::byte{1}; },
  };
  std::set<std::string> seen;
  for (const auto& change : changes) {
    ExporterContext context;
    change(context);
    seen.insert(to_hex(context.encode()));
  }
  CHECK(seen.size() == std::size(changes));
}

TEST_CASE("K2 key intervals are powers of two within the AEAD's limit", "[crypto][key_schedule]") {
  for (const std::uint64_t good : {256ULL, 512ULL, 1ULL << 21, 1ULL << 22})
    CHECK(is_key_interval(good));
  for (const std::uint64_t bad :
       {0ULL, 1ULL, 128ULL, 255ULL, 257ULL, (1ULL << 22) + 1, 1ULL << 23, 1ULL << 63, ~0ULL})
    CHECK_FALSE(is_key_interval(bad));
}

TEST_CASE("D4 a secret is wiped when its life ends", "[crypto][secret]") {
  alignas(Secret<32>) std::array<std::byte, sizeof(Secret<32>)> memory{};
  auto* const secret = new (memory.data()) Secret<32>;
  for (auto& b : secret->writable()) b = std::byte{0x77};
  REQUIRE(memory[31] == std::byte{0x77});
  secret->~Secret();
  std::byte left{};
  for (const volatile std::byte& b : memory) left |= b;
  CHECK(left == std::byte{0});
}

TEST_CASE("D4 a process that forbids core dumps is not dumpable", "[crypto][secret]") {
  const auto end = onehop::test::run_in_child([] {
    rlimit limit{};
    const bool is_done = forbid_core_dumps() && ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 &&
                         ::getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0 &&
                         limit.rlim_max == 0;
    ::_exit(is_done ? 0 : 1);
  });
  CHECK(end.signal == 0);
  CHECK(end.status == 0);
}
