// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Key schedule of the data path: from the TLS exporter to the key of one frame.
//
//   TLS 1.3 exporter (label, ExporterContext) ─▶ ExporterSecret 32
//     └─ Expand-Label "onehop dir" {direction, queue} ─▶ DirectionSecret 32
//          └─ Expand-Label "onehop key" | "onehop iv" {generation g} ─▶ key 16 or 32, iv 12
//                           (compare_label, ExporterContext) ─▶ CompareKey 16
//   g = packet number / interval
//   nonce = iv XOR packet number
//
//= RFC 8446 §7.1   HKDF-Expand-Label
//= RFC 8446 §7.5   exporter
//= RFC 9001 §5.3   nonce
//
// Generations are derived side by side from the direction's secret and not as a chain, so a
// receiver that lost many frames needs one derivation however far the sender went. The price: with
// a stolen direction secret all frames can be read. Secrets are never stored.
//
// The session builds context and direction secrets; the engine core derives generations.
#pragma once

#include <array>
#include <boost/endian/conversion.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "engine/crypto/aead.hpp"
#include "engine/crypto/digest.hpp"
#include "engine/crypto/secret.hpp"

namespace onehop::crypto {

// --- Specification: both ends must agree.
inline constexpr std::string_view exporter_label = "EXPORTER-onehop data v1";
/// Of the CompareKey (content_mac.hpp).
inline constexpr std::string_view compare_label = "EXPORTER-onehop compare v1";
inline constexpr std::uint16_t protocol_version = 5;
/// As TLS numbers its suites with SHA-256 for HKDF.
inline constexpr std::uint16_t aead_aes_128_gcm = 0x1301, aead_chacha20_poly1305 = 0x1303;
inline constexpr std::size_t session_id_bytes = 16;

/// Frames under one key. A GCM key may seal 2^23 (RFC 9001 appendix B); half of it at most.
inline constexpr std::uint64_t key_interval_default = std::uint64_t{1} << 22;
inline constexpr std::uint64_t key_interval_min = std::uint64_t{1} << 8;
inline constexpr std::uint64_t key_interval_max = std::uint64_t{1} << 22;
static_assert(key_interval_max < std::uint64_t{1} << 23,
              "RFC 9001 6.6: confidentiality limit of AES-GCM");

/// is_key_interval: a (peer's) number may be an interval, a power of two within the bounds.
[[nodiscard]] bool is_key_interval(std::uint64_t interval) noexcept;

using ExporterSecret = Secret<32>;
using DirectionSecret = Secret<32>;
struct FrameKey {
  Secret<aead_key_bytes_max> key;  ///< as many of its first bytes as the cipher has, and zeros
  Secret<aead_nonce_bytes> iv;
};

/// Role: what an end of the TLS connection does with files. The other end has the other role.
enum class Role : std::uint8_t { sender = 1, receiver = 2 };
/// Direction of frames, by the role of the end that seals them.
enum class Direction : std::uint8_t { from_sender = 1, from_receiver = 2 };

/// ExporterContext: everything both ends must have understood alike. One that differs in any field
/// gets other keys, so a downgrade or a reflected role does not become a session.
struct ExporterContext {
  std::uint16_t version = protocol_version;
  std::uint16_t aead = aead_aes_128_gcm;
  DigestKind digest = DigestKind::xxh3;
  std::uint32_t block_bytes = onehop::block_bytes;
  std::uint64_t key_interval = key_interval_default;
  std::uint16_t queue_count = 1;
  Role client_role = Role::sender;  ///< of the end that opened the TLS connection
  std::array<std::byte, session_id_bytes> session_id{};

  static constexpr std::size_t encoded_bytes = 2 + 2 + 1 + 4 + 8 + 2 + 2 + session_id_bytes;
  /// encode gives the bytes for SSL_export_keying_material's context.
  [[nodiscard]] std::array<std::byte, encoded_bytes> encode() const noexcept;
};

/// hkdf_expand_label of at most 32 bytes. Label and context: at most 32 bytes each.
void hkdf_expand_label(std::span<const std::byte> secret, std::string_view label,
                       std::span<const std::byte> context, std::span<std::byte> out) noexcept;

[[nodiscard]] DirectionSecret direction_secret(const ExporterSecret& exporter, Direction direction,
                                               std::uint16_t queue) noexcept;

/// frame_key of generation g, for a cipher whose keys have `key_bytes`.
[[nodiscard]] FrameKey frame_key(const DirectionSecret& secret, std::uint64_t generation,
                                 std::size_t key_bytes) noexcept;

/// nonce_of: the packet number, big endian and padded on the left, XOR iv. Inline and by whole
/// words: as a call its 12 bytes come back through memory, and that load stalls every frame.
[[nodiscard]] inline std::array<std::byte, aead_nonce_bytes> nonce_of(
    std::span<const std::byte, aead_nonce_bytes> iv, std::uint64_t packet_number) noexcept {
  constexpr std::size_t pad_bytes = aead_nonce_bytes - sizeof packet_number;
  std::uint64_t low;
  std::memcpy(&low, iv.data() + pad_bytes, sizeof low);
  low ^= boost::endian::native_to_big(packet_number);
  std::array<std::byte, aead_nonce_bytes> nonce;
  std::memcpy(nonce.data(), iv.data(), pad_bytes);
  std::memcpy(nonce.data() + pad_bytes, &low, sizeof low);
  return nonce;
}

}  // namespace onehop::crypto
