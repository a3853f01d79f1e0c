// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/code/words.hpp"

#include <algorithm>

#include "control/session/code/code_form.hpp"
#include "engine/base/check.hpp"

namespace onehop::session {

namespace {

using WordList = std::array<std::string_view, word_count>;

const WordList& word_list() noexcept {
  static const WordList list = [] {
    WordList words;
    std::string_view left = word_list_text;
    for (std::string_view& word : words) {
      word = left.substr(0, left.find(' '));
      left.remove_prefix(word.size() + 1);
    }
    ONEHOP_CHECK(left.empty());
    return words;
  }();
  return list;
}

constexpr bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr char small(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
bool begins_with(std::string_view word, std::string_view typed) noexcept {
  return word.size() >= typed.size() &&
         std::ranges::equal(word.substr(0, typed.size()), typed, {}, {}, small);
}

}  // namespace

std::string_view word_at(std::size_t index) noexcept { return word_list().at(index); }

std::string_view complete_word(std::string_view typed) noexcept {
  const WordList& words = word_list();
  const auto is_before = [](std::string_view word, std::string_view wanted) {
    return std::ranges::lexicographical_compare(word, wanted, {}, {}, small);
  };
  const auto first = std::lower_bound(words.begin(), words.end(), typed, is_before);
  if (typed.empty() || first == words.end() || !begins_with(*first, typed)) return {};
  const auto next = first + 1;
  return next != words.end() && begins_with(*next, typed) ? std::string_view{} : *first;
}

std::size_t TypedWords::first_wrong() const noexcept {
  const auto wrong = std::ranges::find_if(words, &std::string_view::empty);
  return wrong == words.end() ? 0 : static_cast<std::size_t>(wrong - words.begin()) + 1;
}

std::optional<TypedWords> read_words(std::string_view text) noexcept {
  TypedWords typed;
  std::size_t count = 0;
  while (const auto group = next_group(text)) {
    const bool is_word_like =
        group->size() <= typed_letters_max && std::ranges::all_of(*group, is_letter);
    if (count == code_words || !is_word_like) return std::nullopt;
    typed.words[count++] = group->size() < word_letters_min ? "" : complete_word(*group);
  }
  return count == code_words ? std::optional{typed} : std::nullopt;
}

std::size_t write_words(std::span<const std::string_view, code_words> words,
                        std::span<char> text) noexcept {
  std::size_t bytes = 0;
  for (const std::string_view word : words) {
    if (bytes != 0) text[bytes++] = '-';
    std::ranges::copy(word, text.begin() + static_cast<std::ptrdiff_t>(bytes));
    bytes += word.size();
  }
  return bytes;
}

std::string word_fault(std::size_t number) {
  return "word " + std::to_string(number) + " is not in the list of words";
}

}  // namespace onehop::session
