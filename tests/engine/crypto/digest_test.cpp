// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Block digest and tree.
#include "engine/crypto/digest.hpp"

#include <openssl/evp.h>
#include <xxhash.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "engine/crypto/tree.hpp"
#include "tests/engine/crypto/hex.hpp"

using onehop::Digest;
using namespace onehop::crypto;
using onehop::test::random_bytes;
using onehop::test::to_hex;

namespace {

using Bytes = std::vector<std::byte>;

// reference_hash goes through other entries of the libraries than the code under test: EVP, and
// XXH3's streaming form.
Bytes reference_hash(DigestKind kind, const Bytes& input) {
  Bytes out(digest_bytes(kind));
  if (kind == DigestKind::sha256) {
    REQUIRE(EVP_Digest(input.data(), input.size(), reinterpret_cast<unsigned char*>(out.data()),
                       nullptr, EVP_sha256(), nullptr) == 1);
    return out;
  }
  XXH3_state_t* const state = XXH3_createState();
  XXH3_128bits_reset(state);
  XXH3_128bits_update(state, input.data(), input.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  for (std::size_t i = 0; i < 8; ++i) {
    out[i] = static_cast<std::byte>(hash.high64 >> (56 - 8 * i));
    out[8 + i] = static_cast<std::byte>(hash.low64 >> (56 - 8 * i));
  }
  return out;
}

// reference_root is RFC 6962 section 2.1 as it is written.
Bytes reference_root(DigestKind kind, std::span<const Digest> leaves) {
  if (leaves.empty()) return reference_hash(kind, {});
  Bytes input;
  if (leaves.size() == 1) {
    input.push_back(std::byte{0});
    input.insert(input.end(), leaves[0].begin(),
                 leaves[0].begin() + static_cast<std::ptrdiff_t>(digest_bytes(kind)));
    return reference_hash(kind, input);
  }
  std::size_t split = 1;
  while (split * 2 < leaves.size()) split *= 2;
  const Bytes left = reference_root(kind, leaves.first(split)),
              right = reference_root(kind, leaves.subspan(split));
  input.push_back(std::byte{1});
  input.insert(input.end(), left.begin(), left.end());
  input.insert(input.end(), right.begin(), right.end());
  return reference_hash(kind, input);
}

bool is_equal(const Digest& digest, const Bytes& expected) {
  return std::equal(expected.begin(), expected.end(), digest.begin()) &&
         std::all_of(digest.begin() + static_cast<std::ptrdiff_t>(expected.size()), digest.end(),
                     [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

TEST_CASE("block digests have their published values and zero beyond their size",
          "[crypto][digest]") {
  CHECK(to_hex(block_digest(DigestKind::xxh3, {})) ==
        "99aa06d3014798d86001c324468d497f00000000000000000000000000000000");
  CHECK(to_hex(block_digest(DigestKind::sha256, {})) ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const std::string_view abc = "abc";
  CHECK(to_hex(block_digest(DigestKind::sha256, std::as_bytes(std::span{abc}))) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  std::mt19937_64 random{41};
  for (const DigestKind kind : {DigestKind::xxh3, DigestKind::sha256}) {
    CAPTURE(digest_name(kind));
    const std::size_t special[] = {1,         16, 17, 63, 64, 65, 240, 241, 1000, 256 * 1024 - 1,
                                   256 * 1024};
    for (const std::size_t size : special) {
      CAPTURE(size);
      const Bytes input = random_bytes(random, size);
      CHECK(is_equal(block_digest(kind, input), reference_hash(kind, input)));
    }
  }
}

//= RFC 6962 §2.1 type=test
TEST_CASE("the tree's root is RFC 6962's for 0 to 70 leaves and at powers of two",
          "[crypto][tree]") {
  for (const DigestKind kind : {DigestKind::xxh3, DigestKind::sha256}) {
    CAPTURE(digest_name(kind));
    std::mt19937_64 random{42};
    DigestTree tree{kind};
    std::vector<Digest> leaves;
    for (std::size_t n = 0; n <= 1025; ++n) {
      if (n <= 70 || (n & (n - 1)) == 0 || (n & (n + 1)) == 0 || n == 1025) {
        CAPTURE(n);
        CHECK(tree.leaves() == n);
        CHECK(is_equal(tree.root(), reference_root(kind, leaves)));
      }
      leaves.push_back(block_digest(kind, random_bytes(random, 3)));
      tree.add(leaves.back());
    }
  }
}

TEST_CASE("the tree's root does not depend on the order in which blocks come", "[crypto][tree]") {
  std::mt19937_64 random{42};
  for (std::size_t n = 1; n <= 300; n += n < 70 ? 1 : 23) {
    CAPTURE(n);
    std::vector<Digest> leaves;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < n; ++i) {
      leaves.push_back(block_digest(DigestKind::xxh3, random_bytes(random, 3)));
      order.push_back(i);
    }
    // All mixed, and what a resume gives: the second part first.
    const bool is_mixed = random() % 2 == 0;
    if (is_mixed)
      std::ranges::shuffle(order, random);
    else
      std::ranges::rotate(order, order.begin() + static_cast<std::ptrdiff_t>(random() % n));
    DigestTree tree{DigestKind::xxh3};
    for (const std::size_t i : order) tree.put(i, leaves[i]);
    CHECK(tree.leaves() == n);
    CHECK(is_equal(tree.root(), reference_root(DigestKind::xxh3, leaves)));
  }
}

TEST_CASE("the tree tells apart what a weaker one would confuse", "[crypto][tree]") {
  for (const DigestKind kind : {DigestKind::xxh3, DigestKind::sha256}) {
    CAPTURE(digest_name(kind));
    const Digest a = block_digest(kind, std::vector<std::byte>(1, std::byte{1}));
    const Digest b = block_digest(kind, std::vector<std::byte>(1, std::byte{2}));
    const auto root = [kind](std::initializer_list<Digest> leaves) {
      DigestTree tree{kind};
      for (const Digest& leaf : leaves) tree.add(leaf);
      return tree.root();
    };
    CHECK(root({a, b}) != root({b, a}));
    CHECK(root({a}) != a);                         // a leaf is hashed with its prefix
    CHECK(root({a, b, b}) != root({a, b, b, b}));  // no leaf is doubled to fill a level
    CHECK(root({root({a, b})}) != root({a, b}));   // a node is no leaf
    CHECK(root({}) == block_digest(kind, {}));
  }
}
