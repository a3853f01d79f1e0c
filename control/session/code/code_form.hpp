// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The form of a made code: seven groups of four base32 letters, "abcd-efgh-...". 26 of the letters
// are random, which are 130 bits; the last two are check letters, so that a typing error is found
// before the code is used.
//
//   c(x) = c_0 + c_1 x + ... + c_27 x^27 over GF(32), a multiple of (x - a)(x - a^2)
//
// That is a Reed-Solomon code of distance 3: one wrong letter is located, and two are never
// accepted. Pure functions on bytes that may be secret: they keep no copy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace onehop::session {

inline constexpr std::size_t code_letters = 28, code_group_letters = 4;
inline constexpr std::size_t code_groups = code_letters / code_group_letters;
inline constexpr std::size_t made_code_bytes = code_letters + code_groups - 1;

using CodeLetters = std::array<std::uint8_t, code_letters>;  ///< each 0..31

/// is_made_code: the text has make_code()'s form, and its check letters fit. One letter typed 28
/// times does not pass.
[[nodiscard]] bool is_made_code(std::string_view text) noexcept;

/// set_check_letters makes the last two fit the others.
void set_check_letters(CodeLetters& letters) noexcept;
[[nodiscard]] bool do_check_letters_fit(const CodeLetters& letters) noexcept;

/// unify_made writes the made code `typed`, however it was typed, into `text` in make_code()'s
/// form. False: it is not a made code.
[[nodiscard]] bool unify_made(std::string_view typed,
                              std::span<char, made_code_bytes> text) noexcept;

/// next_group removes the next group of characters from `text`; spaces, dashes, dots and
/// underscores separate groups. nullopt: there is none.
[[nodiscard]] std::optional<std::string_view> next_group(std::string_view& text) noexcept;

/// write_code writes made_code_bytes of text.
void write_code(const CodeLetters& letters, std::span<char, made_code_bytes> text) noexcept;

/// fault_of_made: why `typed` is not the made code that it looks like, with the wrong group. Empty:
/// it is right, or has another form.
[[nodiscard]] std::string fault_of_made(std::string_view typed);

}  // namespace onehop::session
