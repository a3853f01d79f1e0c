// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/crypto/key_schedule.hpp"

#include "engine/base/check.hpp"
#include "engine/crypto/sha256.hpp"

namespace onehop::crypto {

namespace {

template <class T>
void put_be(std::span<std::byte> out, std::size_t& at, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out[at++] =
        static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * (sizeof(T) - 1 - i)));
}

}  // namespace

bool is_key_interval(std::uint64_t interval) noexcept {
  return std::has_single_bit(interval) && interval >= key_interval_min &&
         interval <= key_interval_max;
}

std::array<std::byte, ExporterContext::encoded_bytes> ExporterContext::encode() const noexcept {
  ONEHOP_CHECK(is_key_interval(key_interval));
  const Role server_role = client_role == Role::sender ? Role::receiver : Role::sender;
  std::array<std::byte, encoded_bytes> out{};
  std::size_t at = 0;
  put_be(out, at, version);
  put_be(out, at, aead);
  put_be(out, at, static_cast<std::uint8_t>(digest));
  put_be(out, at, block_bytes);
  put_be(out, at, key_interval);
  put_be(out, at, queue_count);
  put_be(out, at, static_cast<std::uint8_t>(client_role));
  put_be(out, at, static_cast<std::uint8_t>(server_role));
  std::memcpy(out.data() + at, session_id.data(), session_id.size());
  ONEHOP_CHECK(at + session_id.size() == encoded_bytes);
  return out;
}

//= RFC 8446 §7.1   HkdfLabel = u16 length || u8-sized "tls13 " + label || u8-sized context
//= RFC 5869 §2.3   T(1) = HMAC(secret, info || 0x01); one block is enough for 32 bytes
void hkdf_expand_label(std::span<const std::byte> secret, std::string_view label,
                       std::span<const std::byte> context, std::span<std::byte> out) noexcept {
  constexpr std::string_view prefix = "tls13 ";
  constexpr std::size_t label_bytes_max = 32, context_bytes_max = 32;
  ONEHOP_CHECK(label.size() <= label_bytes_max);
  ONEHOP_CHECK(context.size() <= context_bytes_max);
  ONEHOP_CHECK(out.size() <= sha256_bytes);
  std::array<std::byte, 2 + 1 + prefix.size() + label_bytes_max + 1 + context_bytes_max + 1> info;
  std::size_t at = 0;
  const auto put = [&](const void* data, std::size_t bytes) {
    if (bytes > 0) std::memcpy(info.data() + at, data, bytes);
    at += bytes;
  };
  put_be(info, at, static_cast<std::uint16_t>(out.size()));
  put_be(info, at, static_cast<std::uint8_t>(prefix.size() + label.size()));
  put(prefix.data(), prefix.size());
  put(label.data(), label.size());
  put_be(info, at, static_cast<std::uint8_t>(context.size()));
  put(context.data(), context.size());
  info[at++] = std::byte{1};
  Secret<sha256_bytes> block;
  hmac_sha256(secret, std::span{info}.first(at), block.writable());
  std::memcpy(out.data(), block.bytes().data(), out.size());
}

DirectionSecret direction_secret(const ExporterSecret& exporter, Direction direction,
                                 std::uint16_t queue) noexcept {
  std::array<std::byte, 3> context;
  std::size_t at = 0;
  put_be(context, at, static_cast<std::uint8_t>(direction));
  put_be(context, at, queue);
  DirectionSecret secret;
  hkdf_expand_label(exporter.bytes(), "onehop dir", context, secret.writable());
  return secret;
}

FrameKey frame_key(const DirectionSecret& secret, std::uint64_t generation) noexcept {
  std::array<std::byte, 8> context;
  std::size_t at = 0;
  put_be(context, at, generation);
  FrameKey derived;
  hkdf_expand_label(secret.bytes(), "onehop key", context, derived.key.writable());
  hkdf_expand_label(secret.bytes(), "onehop iv", context, derived.iv.writable());
  return derived;
}

}  // namespace onehop::crypto
