// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The form of a made code: seven groups of four base32 letters, "abcd-efgh-...". 26 of the letters
// are random, which are 130 bits; the last two are check letters, so that a slip of the hand is
// seen before anybody is asked.
//
//   c(x) = c_0 + c_1 x + ... + c_27 x^27 over GF(32), a multiple of (x - a)(x - a^2)
//
// That is a Reed-Solomon code of distance 3: one wrong letter is found where it stands, and two are
// never taken for a code. Pure functions on bytes that may be secret: they keep no copy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace onehop::session {

inline constexpr std::size_t code_letters = 28, code_check_letters = 2, code_group_letters = 4;
inline constexpr std::size_t code_groups = code_letters / code_group_letters;
inline constexpr std::size_t made_code_bytes = code_letters + code_groups - 1;

using CodeLetters = std::array<std::uint8_t, code_letters>;  ///< each 0..31

/// has_made_form: seven groups of four, whatever the check letters say: earlier versions had none.
[[nodiscard]] bool has_made_form(std::string_view text) noexcept;

/// set_check_letters makes the last two fit the others.
void set_check_letters(CodeLetters& letters) noexcept;
[[nodiscard]] bool do_check_letters_fit(const CodeLetters& letters) noexcept;

/// next_group takes the next group of signs off `text`; spaces, dashes, dots and underscores lie
/// between groups. Nothing: there is none.
[[nodiscard]] std::optional<std::string_view> next_group(std::string_view& text) noexcept;

/// write_code writes made_code_bytes of text.
void write_code(const CodeLetters& letters, std::span<char, made_code_bytes> text) noexcept;

/// fault_of_typed: why `typed` cannot be the made code that it looks like, with the group that is
/// wrong. Empty: nothing is wrong with it, or it is a code of another form. Where it is a made
/// code, it is in `text` as make_code() writes it, however it was typed: capitals, spaces and
/// dashes do not matter.
[[nodiscard]] std::string fault_of_typed(std::string_view typed,
                                         std::span<char, made_code_bytes> text, bool& is_made);

}  // namespace onehop::session
