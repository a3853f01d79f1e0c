// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The pairing code: the one secret that two people (or two scripts) share.
//
//   file | ONEHOP_CODE | prompt ─▶ PairingCode ─CPace (code_exchange.hpp)─▶ TLS 1.3 PSK
//
//   three words   33 bits, from the list of words.hpp: what recv shows
//   made          130 bits and two check letters (code_form.hpp)
//   own           20 to 256 printable bytes that a user chose
//
// A recorded exchange does not help to guess any of them. Each guess takes a connection, and a few
// wrong ones burn every code but a made one.
//
// Codes live in SecretBytes: pages of their own that are left out of core dumps and wiped before
// they are freed. They are never part of argv, of a log or of an Error. The program calls
// crypto::forbid_core_dumps() before it reads one.
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

/// PairingCode is a code in the one form that both ends use, however it was typed. Copies share its
/// pages.
class PairingCode {
 public:
  /// from_text fails with exit code 2. The text does not appear in the error. In words and in a
  /// made code capitals, spaces, dashes and dots do not matter; any other code is used as it is,
  /// without white space at both ends.
  [[nodiscard]] static Result<PairingCode> from_text(std::string_view text);
  [[nodiscard]] std::string_view text() const noexcept;
  /// is_made: from make_code(). It cannot be guessed, so guesses need not burn it.
  [[nodiscard]] bool is_made() const noexcept;

 private:
  std::shared_ptr<const SecretBytes> bytes_;
};

/// make_code draws 130 bits and writes them and two check letters as seven groups of four base32
/// letters: "abcd-efgh-..." (code_form.hpp). Syscalls: getrandom.
[[nodiscard]] Result<PairingCode> make_code();
/// make_words draws three words of the list. Syscalls: getrandom.
[[nodiscard]] Result<PairingCode> make_words();

struct CodeSource {
  std::string file;               ///< path, or "-" for standard input; empty: look further
  bool is_prompt_allowed = true;  ///< ask on the terminal when nothing else gives a code
  std::string prompt = "Code: ";
  bool is_hidden = false;  ///< do not show what is typed
};
/// read_code takes the code from the file, else from ONEHOP_CODE (whose value is then wiped from
/// the environment), else from the terminal, where it asks up to three times: it reports a typing
/// error in a made code, or a word that is not in the list. It may block on the terminal or the
/// file. Syscalls: open, read, tcsetattr.
[[nodiscard]] Result<PairingCode> read_code(const CodeSource& source);

}  // namespace onehop::session
