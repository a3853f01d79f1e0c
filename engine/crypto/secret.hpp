// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Secret<N>: bytes that are wiped after use; and functions that protect a process's keys.
//
// A Secret is a value that its holder owns. It has no comparison and no printing on purpose.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace onehop::crypto {

/// wipe overwrites memory in a way that the compiler keeps (OPENSSL_cleanse).
void wipe(std::span<std::byte> memory) noexcept;

template <std::size_t N>
class Secret {
 public:
  Secret() = default;
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() { wipe(bytes_); }

  [[nodiscard]] std::span<const std::byte, N> bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::span<std::byte, N> writable() noexcept { return bytes_; }

 private:
  std::array<std::byte, N> bytes_{};
};

/// forbid_core_dumps keeps keys out of core files and away from ptrace by the same user. Call it
/// before any key exists. Syscalls: prctl, setrlimit. False: the kernel refused, errno says why.
[[nodiscard]] bool forbid_core_dumps() noexcept;

/// fork_generation grows in the child of every fork(). Code that numbers frames under a key
/// compares it: a child that continued with its parent's key would use the same nonces again.
[[nodiscard]] std::uint32_t fork_generation() noexcept;

}  // namespace onehop::crypto
