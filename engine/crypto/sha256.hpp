// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SHA-256 and HMAC-SHA256 without an allocation, for the key schedule and block digests.
//
// OpenSSL's EVP and HMAC calls fetch and allocate per context; its low-level SHA256_* calls do not,
// and run the same assembly (SHA-NI where the CPU has it). They are marked deprecated since 3.0,
// which sha256.cpp silences for itself. libipsec-mb does not pay here: its lanes want many buffers
// at once, and its direct SHA-256 took 2.44 ns per byte of a 256-KiB block where this takes 0.50
// (Xeon with SHA-NI, ipsec-mb 1.3, OpenSSL 3.0.22, one core).
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace onehop::crypto {

inline constexpr std::size_t sha256_bytes = 32;

/// sha256 of up to three pieces, as if they were one.
[[nodiscard]] std::array<std::byte, sha256_bytes> sha256(
    std::span<const std::byte> first, std::span<const std::byte> second = {},
    std::span<const std::byte> third = {}) noexcept;

/// hmac_sha256 (RFC 2104). The key: at most 64 bytes. It wipes what it derived.
void hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message,
                 std::span<std::byte, sha256_bytes> out) noexcept;

}  // namespace onehop::crypto
