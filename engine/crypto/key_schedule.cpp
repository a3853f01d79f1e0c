// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/crypto/key_schedule.hpp"

#include "engine/base/byte_codec.hpp"
#include "engine/base/check.hpp"
#include "engine/crypto/sha256.hpp"

namespace onehop::crypto {

bool is_key_interval(std::uint64_t interval) noexcept {
  return std::has_single_bit(interval) && interval >= key_interval_min &&
         interval <= key_interval_max;
}

std::array<std::byte, ExporterContext::encoded_bytes> ExporterContext::encode() const noexcept {
  ONEHOP_CHECK(is_key_interval(key_interval));
  const Role server_role = client_role == Role::sender ? Role::receiver : Role::sender;
  std::array<std::byte, encoded_bytes> out{};
  ByteWriter to{out};
  to.u16(version);
  to.u16(aead);
  to.u8(static_cast<std::uint8_t>(digest));
  to.u32(block_bytes);
  to.u64(key_interval);
  to.u16(queue_count);
  to.u8(static_cast<std::uint8_t>(client_role));
  to.u8(static_cast<std::uint8_t>(server_role));
  to.bytes(session_id);
  ONEHOP_CHECK(to.is_ok());
  ONEHOP_CHECK(to.size() == encoded_bytes);
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
  std::array<std::byte, 2 + 1 + prefix.size() + label_bytes_max + 1 + context_bytes_max + 1> buffer;
  ByteWriter info{buffer};
  info.u16(static_cast<std::uint16_t>(out.size()));
  info.u8(static_cast<std::uint8_t>(prefix.size() + label.size()));
  info.bytes(std::as_bytes(std::span{prefix}));
  info.bytes(std::as_bytes(std::span{label}));
  info.u8(static_cast<std::uint8_t>(context.size()));
  info.bytes(context);
  info.u8(1);
  ONEHOP_CHECK(info.is_ok());
  Secret<sha256_bytes> block;
  hmac_sha256(secret, info.written(), block.writable());
  std::memcpy(out.data(), block.bytes().data(), out.size());
}

DirectionSecret direction_secret(const ExporterSecret& exporter, Direction direction,
                                 std::uint16_t queue) noexcept {
  std::array<std::byte, 3> context;
  ByteWriter to{context};
  to.u8(static_cast<std::uint8_t>(direction));
  to.u16(queue);
  DirectionSecret secret;
  hkdf_expand_label(exporter.bytes(), "onehop dir", context, secret.writable());
  return secret;
}

FrameKey frame_key(const DirectionSecret& secret, std::uint64_t generation,
                   std::size_t key_bytes) noexcept {
  std::array<std::byte, 8> context;
  store_be(context.data(), generation);
  FrameKey derived;
  hkdf_expand_label(secret.bytes(), "onehop key", context, derived.key.writable().first(key_bytes));
  hkdf_expand_label(secret.bytes(), "onehop iv", context, derived.iv.writable());
  return derived;
}

}  // namespace onehop::crypto
