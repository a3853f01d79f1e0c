// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/code/code_form.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <vector>

namespace onehop::session {

namespace {

constexpr std::string_view base32_letters = "abcdefghijklmnopqrstuvwxyz234567";
constexpr std::string_view separators = "- ._\t\r\n";
// What is taken for a made code with a slip: so many groups of four, in so many groups in all.
constexpr std::size_t good_groups_min = 5, groups_max = 9;

std::optional<std::uint8_t> value_of(char letter) noexcept {
  if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  const std::size_t at = base32_letters.find(letter);
  return at == std::string_view::npos ? std::nullopt : std::optional{static_cast<std::uint8_t>(at)};
}

/// times_a is the product with a, a root of x^5 + x^2 + 1.
std::uint8_t times_a(std::uint8_t value) noexcept {
  return static_cast<std::uint8_t>((value << 1) ^ ((value & 16U) != 0 ? 0b100101 : 0));
}

struct Syndromes {
  std::uint8_t first = 0, second = 0;  ///< c(a), c(a^2)
  bool operator==(const Syndromes&) const = default;
};

Syndromes syndromes_of(const CodeLetters& letters) noexcept {
  Syndromes sums;
  for (std::size_t i = letters.size(); i-- > 0;) {
    sums.first = times_a(sums.first) ^ letters[i];
    sums.second = times_a(times_a(sums.second)) ^ letters[i];
  }
  return sums;
}

/// groups_wrong are those in which one letter, or two neighbours that changed places, explain what
/// does not fit: "group 3 or group 5". Empty: more is wrong.
std::string groups_wrong(CodeLetters letters) {
  std::array<bool, code_groups> is_wrong{};
  const auto note = [&](std::size_t place) {
    if (do_check_letters_fit(letters)) is_wrong[place / code_group_letters] = true;
  };
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const std::uint8_t before = letters[i];
    for (std::uint8_t value = 0; value < 32; ++value) {
      letters[i] = value;
      note(i);
    }
    letters[i] = before;
  }
  for (std::size_t i = 0; i + 1 < letters.size(); ++i) {
    std::swap(letters[i], letters[i + 1]);
    note(i);
    std::swap(letters[i], letters[i + 1]);
  }
  ::OPENSSL_cleanse(letters.data(), letters.size());
  std::string text;
  for (std::size_t i = 0; i < is_wrong.size(); ++i)
    if (is_wrong[i]) text += (text.empty() ? "group " : " or group ") + std::to_string(i + 1);
  return text;
}

std::vector<std::string_view> groups_of(std::string_view text) {
  std::vector<std::string_view> groups;
  while (const auto group = next_group(text)) groups.push_back(*group);
  return groups;
}

std::string fault_of_groups(const std::vector<std::string_view>& groups) {
  const auto is_of_code = [](char letter) { return value_of(letter).has_value(); };
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string group = "group " + std::to_string(i + 1);
    if (!std::ranges::all_of(groups[i], is_of_code))
      return group + " has a sign that is in no code (a to z, 2 to 7)";
    if (groups[i].size() != code_group_letters)
      return group + " has " + std::to_string(groups[i].size()) + " letters, and not 4";
  }
  return "it has " + std::to_string(groups.size()) + " groups of letters, and not 7";
}

/// letters_in: how many letters `text` has, of which the first are in `letters`; none where it has
/// another sign.
std::size_t letters_in(std::string_view text, CodeLetters& letters) noexcept {
  std::size_t count = 0;
  for (const char c : text) {
    if (separators.find(c) != std::string_view::npos) continue;
    const auto value = value_of(c);
    if (!value) return 0;
    if (count < letters.size()) letters[count] = *value;
    ++count;
  }
  return count;
}

}  // namespace

std::optional<std::string_view> next_group(std::string_view& text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(separators), text.size()));
  const std::string_view group = text.substr(0, text.find_first_of(separators));
  text.remove_prefix(group.size());
  return group.empty() ? std::nullopt : std::optional{group};
}

// 26 random letters have fewer than eight different ones less than once in 10^10 codes.
bool is_made_code(std::string_view text) noexcept {
  constexpr std::size_t different_letters_min = 8;
  std::array<char, made_code_bytes> unified{};
  const bool is_made =
      unify_made(text, unified) && text == std::string_view{unified.data(), unified.size()};
  std::ranges::sort(unified);
  const auto different = std::ranges::unique(unified).begin() - unified.begin();
  ::OPENSSL_cleanse(unified.data(), unified.size());
  return is_made && static_cast<std::size_t>(different) > different_letters_min;  // with the dash
}

bool unify_made(std::string_view typed, std::span<char, made_code_bytes> text) noexcept {
  CodeLetters letters{};
  const bool is_made = letters_in(typed, letters) == code_letters && do_check_letters_fit(letters);
  if (is_made) write_code(letters, text);
  ::OPENSSL_cleanse(letters.data(), letters.size());
  return is_made;
}

bool do_check_letters_fit(const CodeLetters& letters) noexcept {
  return syndromes_of(letters) == Syndromes{};
}

// 1024 pairs are tried once, where the division that finds them would be a table.
void set_check_letters(CodeLetters& letters) noexcept {
  for (std::uint16_t pair = 0; pair < 1024; ++pair) {
    letters[code_letters - 2] = static_cast<std::uint8_t>(pair % 32);
    letters[code_letters - 1] = static_cast<std::uint8_t>(pair / 32);
    if (do_check_letters_fit(letters)) return;
  }
}

void write_code(const CodeLetters& letters, std::span<char, made_code_bytes> text) noexcept {
  std::size_t at = 0;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (i != 0 && i % code_group_letters == 0) text[at++] = '-';
    text[at++] = base32_letters[letters[i]];
  }
}

// A code that a person chose may have words of four letters: one with a digit in it was made.
std::string fault_of_made(std::string_view typed) {
  CodeLetters letters{};
  const std::size_t count = letters_in(typed, letters);
  const bool is_made = count == code_letters && do_check_letters_fit(letters);
  const std::string wrong = count == code_letters && !is_made ? groups_wrong(letters) : "";
  ::OPENSSL_cleanse(letters.data(), letters.size());
  const bool has_digit = typed.find_first_of("0123456789") != std::string_view::npos;
  if (is_made || !has_digit) return {};
  const std::vector<std::string_view> groups = groups_of(typed);
  const auto good = std::ranges::count_if(groups, [](std::string_view group) {
    CodeLetters unused;
    return letters_in(group, unused) == code_group_letters;
  });
  const bool looks_made =
      static_cast<std::size_t>(good) >= good_groups_min && groups.size() <= groups_max;
  if (count != code_letters) return looks_made ? fault_of_groups(groups) : "";
  if (wrong.empty()) return "its check letters do not fit: more than one letter is wrong";
  return wrong + " is wrong, as the check letters show";
}

}  // namespace onehop::session
