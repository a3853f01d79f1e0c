// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AeadKey: AES-128-GCM or ChaCha20-Poly1305 under one key, out of place. It is the data path's only
// copy.
//
// ChaCha20-Poly1305 is for processors without AES instructions. Where one end has none, both agree
// on it in the handshake (tls.hpp).
//
// Two backends of AES-128-GCM give the same bytes. libipsec-mb seals a 1400-byte frame in 89 ns
// where OpenSSL's EVP takes 392 ns (one core, AVX-512 and VAES), so `automatic` means ipsec_mb
// where it is built in. Contexts are made at construction; set_key, seal and open allocate nothing.
//
// One thread uses an AeadKey at a time. It does not choose nonces: FrameSealer and FrameOpener do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/pieces.hpp"

namespace onehop::crypto {

inline constexpr std::size_t aead_key_bytes = 16;  // of AES-128-GCM
inline constexpr std::size_t chacha20_key_bytes = 32;
inline constexpr std::size_t aead_key_bytes_max = chacha20_key_bytes;
inline constexpr std::size_t aead_nonce_bytes = 12;
inline constexpr std::size_t aead_tag_bytes = 16;

/// All but chacha20, which is ChaCha20-Poly1305 by OpenSSL, are AES-128-GCM.
enum class AeadBackend : std::uint8_t { automatic, ipsec_mb, openssl, chacha20 };

/// has_aes_instructions says whether this processor has those that AES-GCM is fast with.
[[nodiscard]] bool has_aes_instructions() noexcept;
/// is_available says whether this build has the backend; all but ipsec_mb always are.
[[nodiscard]] bool is_available(AeadBackend backend) noexcept;
/// resolve turns automatic into the backend that it stands for.
[[nodiscard]] AeadBackend resolve(AeadBackend backend) noexcept;
/// name for reports: "ipsec-mb", "openssl" (of what automatic stands for) or "chacha20".
[[nodiscard]] std::string_view name(AeadBackend backend) noexcept;
/// describe_aead gives cipher and library of a name(), for people.
[[nodiscard]] std::string describe_aead(std::string_view name);

class AeadKey {
 public:
  /// The backend must be available. Allocates; the key is unset until set_key().
  explicit AeadKey(AeadBackend backend);
  AeadKey(AeadKey&&) noexcept;
  ~AeadKey();

  /// key_bytes: the length of its cipher's keys.
  [[nodiscard]] std::size_t key_bytes() const noexcept;
  void set_key(std::span<const std::byte> key) noexcept;

  /// seal writes ciphertext and tag at `out`, which equals body.data() or does not overlap it.
  void seal(std::span<const std::byte, aead_nonce_bytes> nonce, std::span<const std::byte> aad,
            std::span<const std::byte> body, std::byte* out) noexcept;

  /// open takes ciphertext and tag, in one piece or several, and writes the plaintext at `out` in
  /// one. `out` does not overlap them, or it is the address of the only piece. False: shorter than
  /// a tag (nothing written) or not authentic (what was written at `out` is garbage: never use it).
  [[nodiscard]] bool open(std::span<const std::byte, aead_nonce_bytes> nonce,
                          std::span<const std::byte> aad, Pieces sealed, std::byte* out) noexcept;

  [[nodiscard]] AeadBackend backend() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onehop::crypto
