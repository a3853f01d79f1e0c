// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The pairing code: the one secret that two people (or two scripts) share, and the key that is
// stretched from it.
//
//   file | ONEHOP_CODE | prompt ─▶ PairingCode, 20..256 printable bytes
//     ─scrypt─▶ PairingKey, 32 bytes ─▶ TLS 1.3 PSK
//
// Codes and keys live in SecretBytes: pages of their own that are left out of core dumps and wiped
// before they go. They are never part of argv, of a log or of an Error. The program calls
// crypto::forbid_core_dumps() before it reads one. A passive observer can test guesses against the
// binder of a TLS handshake, so short human codes are forbidden rather than stretched into a false
// sense of safety (RFC 9257 §4).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/result.hpp"

namespace onehop::session {

/// SecretBytes owns whole pages for a secret: MADV_DONTDUMP, locked in memory where the limit
/// allows, wiped at the end. Syscalls: mmap, madvise, mlock, munmap.
class SecretBytes {
 public:
  [[nodiscard]] static Result<SecretBytes> allocate(std::size_t size_bytes);
  [[nodiscard]] std::span<std::byte> bytes() noexcept { return {data_.get(), size_bytes()}; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {data_.get(), size_bytes()};
  }

 private:
  struct Wipe {
    std::size_t size_bytes;
    void operator()(std::byte* data) const noexcept;
  };
  [[nodiscard]] std::size_t size_bytes() const noexcept {
    return data_ ? data_.get_deleter().size_bytes : 0;
  }
  std::unique_ptr<std::byte, Wipe> data_;
};

inline constexpr std::size_t code_bytes_min = 20;
inline constexpr std::size_t code_bytes_max = 256;
inline constexpr std::size_t pairing_key_bytes = 32;

/// PairingCode is a code that passed the length and character rules, taken as is but for white
/// space at both ends.
class PairingCode {
 public:
  /// from_text fails with exit code 2. The text does not appear in the error.
  [[nodiscard]] static Result<PairingCode> from_text(std::string_view text);
  [[nodiscard]] std::string_view text() const noexcept;

 private:
  SecretBytes bytes_;
};

/// make_code draws 130 bits and writes them and two check letters as seven groups of four base32
/// letters: "abcd-efgh-..." (code_form.hpp). Syscalls: getrandom.
[[nodiscard]] Result<PairingCode> make_code();

struct CodeSource {
  std::string file;               ///< path, or "-" for standard input; empty: look further
  bool is_prompt_allowed = true;  ///< ask on the terminal when nothing else gives a code
  std::string prompt = "Code: ";
  bool is_hidden = false;  ///< do not show what is typed
};
/// read_code takes the code from the file, else from ONEHOP_CODE (whose value is then wiped from
/// the environment), else from the terminal, three times where it cannot be right: a slip in a made
/// code is named. It may block on the terminal or the file. Syscalls: open, read, tcsetattr.
[[nodiscard]] Result<PairingCode> read_code(const CodeSource& source);

/// PairingKey is the external PSK of TLS.
class PairingKey {
 public:
  [[nodiscard]] std::span<const std::byte, pairing_key_bytes> bytes() const noexcept {
    return bytes_.bytes().first<pairing_key_bytes>();
  }
  /// is_strong: of a code of 128 random bits or more, by its form. Nobody can guess it, so guesses
  /// need not burn it.
  [[nodiscard]] bool is_strong() const noexcept { return is_strong_; }

 private:
  friend Result<PairingKey> stretch(const PairingCode&);
  SecretBytes bytes_;
  bool is_strong_ = false;
};
/// stretch runs scrypt: 16 MiB, given back at once, and about 50 ms; 1 MiB and 3 ms for a code of
/// make_code's form, whose 130 bits nobody can try. Both ends get the same key from the same code.
[[nodiscard]] Result<PairingKey> stretch(const PairingCode& code);

}  // namespace onehop::session
