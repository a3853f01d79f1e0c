// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AES-128-GCM and ChaCha20-Poly1305: each backend against published vectors and against a one-shot
// EVP reference written here.
#include "engine/crypto/aead.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "tests/engine/crypto/hex.hpp"

using namespace onehop::crypto;
using onehop::test::array_from_hex;
using onehop::test::from_hex;
using onehop::test::random_bytes;
using onehop::test::to_hex;

namespace {

using Bytes = std::vector<std::byte>;
using Key = std::array<std::byte, aead_key_bytes_max>;  // a cipher takes the first of them
using Nonce = std::array<std::byte, aead_nonce_bytes>;

std::vector<AeadBackend> backends() {
  std::vector<AeadBackend> all{AeadBackend::openssl, AeadBackend::chacha20};
  if (is_available(AeadBackend::ipsec_mb))
    all.push_back(AeadBackend::ipsec_mb);
  else
    WARN("skipped for ipsec-mb: not built in");
  return all;
}

AeadKey made(AeadBackend backend, const Key& key) {
  AeadKey aead{backend};
  aead.set_key(std::span{key}.first(aead.key_bytes()));
  return aead;
}

Bytes reference_seal(AeadBackend backend, const Key& key, const Nonce& nonce, const Bytes& aad,
                     const Bytes& body) {
  const EVP_CIPHER* const cipher =
      backend == AeadBackend::chacha20 ? EVP_chacha20_poly1305() : EVP_aes_128_gcm();
  const auto raw = [](const std::byte* p) { return reinterpret_cast<const unsigned char*>(p); };
  Bytes out(body.size() + aead_tag_bytes);
  auto* const to = reinterpret_cast<unsigned char*>(out.data());
  EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
  int n = 0;
  REQUIRE(EVP_EncryptInit_ex(context, cipher, nullptr, raw(key.data()), raw(nonce.data())) == 1);
  const auto length = [](const Bytes& bytes) { return static_cast<int>(bytes.size()); };
  if (!aad.empty())
    REQUIRE(EVP_EncryptUpdate(context, nullptr, &n, raw(aad.data()), length(aad)) == 1);
  if (!body.empty())
    REQUIRE(EVP_EncryptUpdate(context, to, &n, raw(body.data()), length(body)) == 1);
  REQUIRE(EVP_EncryptFinal_ex(context, to + body.size(), &n) == 1);
  REQUIRE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, aead_tag_bytes, to + body.size()) ==
          1);
  EVP_CIPHER_CTX_free(context);
  return out;
}

}  // namespace

namespace {

struct Row {
  AeadBackend backend;
  std::string key, nonce, aad, body, sealed;
};

void check_row(const Row& row) {
  CAPTURE(name(row.backend));
  AeadKey aead{row.backend};
  aead.set_key(from_hex(row.key));
  const auto nonce = array_from_hex<aead_nonce_bytes>(row.nonce);
  const Bytes body = from_hex(row.body), aad = from_hex(row.aad);
  Bytes sealed(body.size() + aead_tag_bytes);
  aead.seal(nonce, aad, body, sealed.data());
  CHECK(to_hex(sealed) == row.sealed);
  Bytes opened(body.size() + 1);
  CHECK(aead.open(nonce, aad, sealed, opened.data()));
  opened.pop_back();
  CHECK(opened == body);
}

}  // namespace

// McGrew and Viega, "The Galois/Counter Mode of Operation (GCM)", appendix B, cases 1 to 4; NIST
// validates with them.
TEST_CASE("aead gives the published ciphertexts and tags", "[crypto][aead]") {
  const std::string key3 = "feffe9928665731c6d6a8f9467308308", nonce3 = "cafebabefacedbaddecaf888";
  const std::string body3 =
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6"
      "b525"
      "b16aedf5aa0de657ba637b391aafd255";
  const std::string sealed3 =
      "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84"
      "aa05"
      "1ba30b396a0aac973d58e091473f5985";
  const std::string body4 = body3.substr(0, 120);
  const std::string sealed4 = sealed3.substr(0, 120) + "5bc94fbc3221a5db94fae95ae7121a47";
  for (const AeadBackend backend : backends()) {
    if (backend == AeadBackend::chacha20) continue;
    const std::string zeros(24, '0'), key1(32, '0');
    check_row({backend, key1, zeros, "", "", "58e2fccefa7e3061367f1d57a4e7455a"});
    check_row({backend, key1, zeros, "", key1,
               "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf"});
    check_row({backend, key3, nonce3, "", body3, sealed3 + "4d5c2af327cd64a62cf35abd2ba6fab4"});
    check_row({backend, key3, nonce3, "feedfacedeadbeeffeedfacedeadbeefabaddad2", body4, sealed4});
  }
}

//= RFC 8439 §2.8.2 type=test
TEST_CASE("aead gives the ciphertext and tag of ChaCha20-Poly1305's RFC", "[crypto][aead]") {
  const std::string text =
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
      "sunscreen would be it.";
  check_row({AeadBackend::chacha20,
             "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
             "070000004041424344454647", "50515253c0c1c2c3c4c5c6c7",
             to_hex(std::as_bytes(std::span{text})),
             "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
             "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
             "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
             "3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691"});
}

// Lengths around every boundary of the cipher's block and of the backends' unrolled loops, and
// whole frames.
TEST_CASE("aead backends give equal bytes, in place and out of place", "[crypto][aead]") {
  std::mt19937_64 random{21};
  std::vector<std::size_t> sizes;
  for (std::size_t n = 0; n <= 300; ++n) sizes.push_back(n);
  const std::size_t special[] = {511, 512, 767, 768, 1024, 1400, 1428, 8900, 65'000};
  for (const std::size_t n : special) sizes.push_back(n);
  const auto all = backends();
  for (const std::size_t size : sizes) {
    CAPTURE(size);
    Key key{};
    Nonce nonce{};
    std::ranges::copy(random_bytes(random, key.size()), key.begin());
    std::ranges::copy(random_bytes(random, nonce.size()), nonce.begin());
    const Bytes aad = random_bytes(random, size % 3 == 0 ? size % 40 : 28),
                body = random_bytes(random, size);
    for (const AeadBackend backend : all) {
      CAPTURE(name(backend));
      const Bytes expected = reference_seal(backend, key, nonce, aad, body);
      AeadKey aead = made(backend, key);
      constexpr std::byte guard{0xa5};
      Bytes sealed(expected.size() + 32, guard);
      aead.seal(nonce, aad, body, sealed.data());
      CHECK(std::equal(expected.begin(), expected.end(), sealed.begin()));
      CHECK(std::all_of(sealed.end() - 32, sealed.end(), [](std::byte b) { return b == guard; }));
      Bytes in_place(body);
      in_place.resize(expected.size());
      aead.seal(nonce, aad, std::span{in_place}.first(size), in_place.data());
      CHECK(in_place == expected);

      Bytes opened(size + 32, guard);
      REQUIRE(aead.open(nonce, aad, expected, opened.data()));
      CHECK(std::equal(body.begin(), body.end(), opened.begin()));
      CHECK(std::all_of(opened.end() - 32, opened.end(), [](std::byte b) { return b == guard; }));
      REQUIRE(aead.open(nonce, aad, in_place, in_place.data()));
      CHECK(std::equal(body.begin(), body.end(), in_place.begin()));
    }
  }
}

// Goal:   a frame in several pieces opens as the same frame in one, wherever it is cut, through the
// tag too. Method: every first cut and a second one drawn; an empty piece; one flipped bit in each
// piece.
TEST_CASE("N1 aead opens a frame in pieces, and rejects one with a flipped bit in any of them",
          "[crypto][aead]") {
  const std::uint64_t seed = 23;
  CAPTURE(seed);
  std::mt19937_64 random{seed};
  Key key{};
  Nonce nonce{};
  std::ranges::copy(random_bytes(random, key.size()), key.begin());
  const Bytes aad = random_bytes(random, 28), body = random_bytes(random, 333);
  for (const AeadBackend backend : backends()) {
    CAPTURE(name(backend));
    AeadKey aead = made(backend, key);
    Bytes sealed(body.size() + aead_tag_bytes);
    aead.seal(nonce, aad, body, sealed.data());
    for (std::size_t cut = 0; cut <= sealed.size(); ++cut) {
      const std::size_t second = cut + random() % (sealed.size() - cut + 1);
      CAPTURE(cut, second);
      const std::span<std::byte> whole{sealed};
      const std::array<std::span<const std::byte>, 3> rest = {
          whole.subspan(cut, second - cut), std::span<const std::byte>{}, whole.subspan(second)};
      const onehop::Pieces pieces{whole.first(cut), rest};
      REQUIRE(pieces.size() == sealed.size());
      constexpr std::byte guard{0xa5};
      Bytes opened(body.size() + 32, guard);
      REQUIRE(aead.open(nonce, aad, pieces, opened.data()));
      CHECK(std::equal(body.begin(), body.end(), opened.begin()));
      CHECK(std::all_of(opened.end() - 32, opened.end(), [](std::byte b) { return b == guard; }));
      const std::size_t flipped = random() % sealed.size();
      sealed[flipped] ^= std::byte{1};
      CHECK_FALSE(aead.open(nonce, aad, pieces, opened.data()));
      sealed[flipped] ^= std::byte{1};
    }
    const std::array<std::span<const std::byte>, 1> short_rest = {std::span{sealed}.first(8)};
    Bytes opened(16);
    CHECK_FALSE(aead.open(nonce, aad, onehop::Pieces{std::span{sealed}.first(7), short_rest},
                          opened.data()));
  }
}

TEST_CASE("N1 aead rejects flipped bits, truncation, padding, and a wrong nonce, key or header",
          "[crypto][aead]") {
  std::mt19937_64 random{22};
  Key key{};
  Nonce nonce{};
  std::ranges::copy(random_bytes(random, key.size()), key.begin());
  const Bytes aad = random_bytes(random, 28), body = random_bytes(random, 50);
  for (const AeadBackend backend : backends()) {
    CAPTURE(name(backend));
    AeadKey aead = made(backend, key);
    Bytes sealed(body.size() + aead_tag_bytes), opened(body.size() + 64);
    aead.seal(nonce, aad, body, sealed.data());
    REQUIRE(aead.open(nonce, aad, sealed, opened.data()));
    int accepted = 0;
    for (std::size_t bit = 0; bit < sealed.size() * 8; ++bit) {
      Bytes forged(sealed);
      forged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      accepted += aead.open(nonce, aad, forged, opened.data());
    }
    for (std::size_t bit = 0; bit < aad.size() * 8; ++bit) {
      Bytes forged(aad);
      forged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      accepted += aead.open(nonce, forged, sealed, opened.data());
    }
    for (std::size_t size = 0; size < sealed.size(); ++size)
      accepted += aead.open(nonce, aad, std::span{sealed}.first(size), opened.data());
    Bytes longer(sealed);
    longer.push_back(std::byte{0});
    accepted += aead.open(nonce, aad, longer, opened.data());
    Nonce other_nonce = nonce;
    other_nonce[11] ^= std::byte{1};
    accepted += aead.open(other_nonce, aad, sealed, opened.data());
    accepted += aead.open(nonce, {}, sealed, opened.data());
    Key other_key = key;
    other_key[0] ^= std::byte{1};
    AeadKey other = made(backend, other_key);
    accepted += other.open(nonce, aad, sealed, opened.data());
    CHECK(accepted == 0);
    // The key still works after all these failures, and after it was changed and set back.
    aead.set_key(std::span{other_key}.first(aead.key_bytes()));
    CHECK_FALSE(aead.open(nonce, aad, sealed, opened.data()));
    aead.set_key(std::span{key}.first(aead.key_bytes()));
    CHECK(aead.open(nonce, aad, sealed, opened.data()));
  }
}

// Goal:   an empty span has a null pointer, which a library may answer by doing nothing. The tag
// must still be made and
//         checked.
TEST_CASE("aead seals and checks an empty body with an empty header", "[crypto][aead]") {
  for (const AeadBackend backend : backends()) {
    CAPTURE(name(backend));
    AeadKey aead = made(backend, Key{});
    std::array<std::byte, aead_tag_bytes> tag{};
    std::byte unused{};
    aead.seal(Nonce{}, {}, {}, tag.data());
    CHECK(to_hex(tag) == to_hex(reference_seal(backend, Key{}, Nonce{}, {}, {})));
    CHECK(aead.open(Nonce{}, {}, tag, &unused));
    tag[15] ^= std::byte{1};
    CHECK_FALSE(aead.open(Nonce{}, {}, tag, &unused));
    tag.fill(std::byte{0});
    CHECK_FALSE(aead.open(Nonce{}, {}, tag, &unused));
  }
}

TEST_CASE("aead names its backend, and automatic is one that is built in", "[crypto][aead]") {
  CHECK(is_available(AeadBackend::openssl));
  CHECK(is_available(AeadBackend::automatic));
  CHECK(is_available(resolve(AeadBackend::automatic)));
  CHECK(resolve(AeadBackend::automatic) != AeadBackend::automatic);
  CHECK(name(AeadBackend::openssl) == "openssl");
  CHECK(name(AeadBackend::ipsec_mb) == "ipsec-mb");
  CHECK(name(AeadBackend::chacha20) == "chacha20");
  CHECK(describe_aead("openssl") == "AES-128-GCM by openssl");
  CHECK(describe_aead("chacha20") == "ChaCha20-Poly1305 by openssl");
  CHECK(AeadKey{AeadBackend::automatic}.backend() == resolve(AeadBackend::automatic));
}
