// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The words of a code: 2,048 of them (tools/dev/words), so that three have 33 bits.
//
// The first three letters of a word are unique, and typing them is enough. No word is a prefix of
// another, and none is known to sound like another. Pure functions; they keep no copy.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace onehop::session {

inline constexpr std::size_t word_count = 2048, word_bits = 11, code_words = 3;
inline constexpr std::size_t word_letters_min = 3, word_letters_max = 8;
/// A longer group of letters is not a mistyped word.
inline constexpr std::size_t typed_letters_max = 12;
inline constexpr std::size_t words_code_bytes_max = code_words * (word_letters_max + 1);

/// Each word with a space behind it, in alphabetical order (word_list.cpp).
extern const std::string_view word_list_text;

[[nodiscard]] std::string_view word_at(std::size_t index) noexcept;
/// complete_word is the one word that begins with `typed`, in small letters or capitals; empty
/// where there is none, or several.
[[nodiscard]] std::string_view complete_word(std::string_view typed) noexcept;

/// TypedWords: what a user typed as words of the list.
struct TypedWords {
  std::array<std::string_view, code_words> words;  ///< of the list; empty: what was typed is no
                                                   ///< word
  /// The first that is not a word, from 1; 0: all are words.
  [[nodiscard]] std::size_t first_wrong() const noexcept;
};
/// read_words: nullopt if `text` is not three groups of up to typed_letters_max letters, and so
/// another kind of code. Capitals, spaces, dashes and dots do not matter; three letters of each are
/// enough.
[[nodiscard]] std::optional<TypedWords> read_words(std::string_view text) noexcept;

/// write_words writes them with dashes between, in at most words_code_bytes_max bytes; returns the
/// length.
[[nodiscard]] std::size_t write_words(std::span<const std::string_view, code_words> words,
                                      std::span<char> text) noexcept;
/// word_fault: the text for a word that is not in the list, the first being 1.
[[nodiscard]] std::string word_fault(std::size_t number);

}  // namespace onehop::session
