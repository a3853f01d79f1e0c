// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/crypto/cpace.hpp"

#include <sodium/core.h>
#include <sodium/crypto_core_ristretto255.h>
#include <sodium/crypto_hash_sha512.h>
#include <sodium/crypto_scalarmult_ristretto255.h>
#include <unistd.h>

#include <string_view>

#include "engine/base/check.hpp"

namespace onehop::crypto {

namespace {

constexpr std::string_view domain = "CPaceRistretto255", key_domain = "CPaceRistretto255_ISK";
constexpr std::size_t hash_block_bytes = 128;  // of SHA-512

static_assert(cpace_point_bytes == crypto_core_ristretto255_BYTES);
static_assert(cpace_point_bytes == crypto_core_ristretto255_SCALARBYTES);
static_assert(cpace_key_bytes == crypto_hash_sha512_BYTES);
static_assert(cpace_key_bytes == crypto_core_ristretto255_HASHBYTES);

const unsigned char* raw(std::span<const std::byte> bytes) noexcept {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* raw_out(std::span<std::byte> bytes) noexcept {
  return reinterpret_cast<unsigned char*>(bytes.data());
}
std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span{text});
}

/// length_bytes is how many bytes a length takes in LEB128.
constexpr std::size_t length_bytes(std::size_t length) noexcept {
  std::size_t bytes = 1;
  while (length >>= 7) ++bytes;
  return bytes;
}

/// Transcript is SHA-512 over strings, each after its length in LEB128: the draft's lv_cat().
class Transcript {
 public:
  Transcript() noexcept { ::crypto_hash_sha512_init(&state_); }
  ~Transcript() { wipe(std::as_writable_bytes(std::span{&state_, 1})); }
  Transcript(const Transcript&) = delete;
  Transcript& operator=(const Transcript&) = delete;

  Transcript& add(std::span<const std::byte> string) noexcept {
    std::size_t left = string.size();
    do {
      const bool has_more = left >= 0x80;
      const auto byte = static_cast<unsigned char>((left & 0x7fU) | (has_more ? 0x80U : 0U));
      ::crypto_hash_sha512_update(&state_, &byte, 1);
      left >>= 7;
    } while (left != 0);
    ::crypto_hash_sha512_update(&state_, raw(string), string.size());
    return *this;
  }
  [[nodiscard]] CpaceKey hash() noexcept {
    CpaceKey digest;
    ::crypto_hash_sha512_final(&state_, raw_out(digest.writable()));
    return digest;
  }

 private:
  ::crypto_hash_sha512_state state_;
};

}  // namespace

bool cpace_multiply(const CpaceScalar& scalar, const CpacePoint& point,
                    std::span<std::byte, cpace_point_bytes> product) noexcept {
  // It chooses among implementations once; later calls return at once.
  if (::sodium_init() < 0) return false;
  return ::crypto_scalarmult_ristretto255(raw_out(product), raw(scalar.bytes()), raw(point)) == 0;
}

bool is_cpace_point(const CpacePoint& point) noexcept {
  constexpr CpacePoint neutral{};
  return point != neutral && ::crypto_core_ristretto255_is_valid_point(raw(point)) == 1;
}

// The zero bytes fill the hash's first block, so that the time of the rest does not depend on the
// password.
CpacePoint cpace_generator(const CpaceInput& input) noexcept {
  constexpr std::array<std::byte, hash_block_bytes> zeros{};
  const std::size_t taken = length_bytes(input.password.size()) + input.password.size() +
                            length_bytes(domain.size()) + domain.size() + 1;
  const std::size_t zero_bytes = taken < hash_block_bytes ? hash_block_bytes - taken : 0;
  Transcript transcript;
  transcript.add(bytes_of(domain)).add(input.password).add(std::span{zeros}.first(zero_bytes));
  const CpaceKey hash = transcript.add(input.channel).add(input.session_id).hash();
  CpacePoint generator;
  ::crypto_core_ristretto255_from_hash(raw_out(generator), raw(hash.bytes()));
  return generator;
}

Cpace Cpace::begin(const CpaceInput& input) {
  CpaceScalar scalar;
  ONEHOP_CHECK(::getentropy(scalar.writable().data(), scalar.writable().size()) == 0);
  scalar.writable().back() &= std::byte{0x0f};  // below 2^252, so below the group's order
  return with_scalar(input, scalar);
}

Cpace Cpace::with_scalar(const CpaceInput& input, const CpaceScalar& scalar) {
  Cpace self;
  self.session_id_.assign(input.session_id.begin(), input.session_id.end());
  self.scalar_ = scalar;
  CpacePoint generator = cpace_generator(input);
  ONEHOP_CHECK(cpace_multiply(scalar, generator, self.point_));
  wipe(generator);
  return self;
}

std::optional<CpaceKey> Cpace::key_of_initiator(std::span<const std::byte> said,
                                                const CpaceMessage& responder) const {
  Secret<cpace_point_bytes> shared;
  if (!cpace_multiply(scalar_, responder.point, shared.writable())) return std::nullopt;
  return hash_of(shared, {point_, said}, responder);
}

std::optional<CpaceKey> Cpace::key_of_responder(std::span<const std::byte> said,
                                                const CpaceMessage& initiator) const {
  Secret<cpace_point_bytes> shared;
  if (!cpace_multiply(scalar_, initiator.point, shared.writable())) return std::nullopt;
  return hash_of(shared, initiator, {point_, said});
}

CpaceKey Cpace::hash_of(const Secret<cpace_point_bytes>& shared, const CpaceMessage& initiator,
                        const CpaceMessage& responder) const noexcept {
  Transcript transcript;
  transcript.add(bytes_of(key_domain)).add(session_id_).add(shared.bytes());
  transcript.add(initiator.point).add(initiator.said);
  return transcript.add(responder.point).add(responder.said).hash();
}

}  // namespace onehop::crypto
