// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   the words of a code keep the rules by which people carry them, and are read as meant.
// Method: all words of the list, and what people type. Bounds: exact.
#include "control/session/code/words.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

using namespace onehop::session;

TEST_CASE("the list has 2,048 words in order, of 3 to 8 small letters, told by the first three",
          "[control][session]") {
  static_assert(std::size_t{1} << word_bits == word_count);
  CHECK(std::ranges::count(word_list_text, ' ') == static_cast<std::ptrdiff_t>(word_count));
  for (std::size_t i = 0; i < word_count; ++i) {
    const std::string_view word = word_at(i);
    CAPTURE(word);
    CHECK(word.size() >= word_letters_min);
    CHECK(word.size() <= word_letters_max);
    CHECK(std::ranges::all_of(word, [](char c) { return c >= 'a' && c <= 'z'; }));
    if (i == 0) continue;
    // In order and different there: so no two begin alike, and none begins another.
    CHECK(word_at(i - 1).substr(0, 3) < word.substr(0, 3));
  }
}

TEST_CASE("each word is completed from three letters, and from more of its own",
          "[control][session]") {
  for (std::size_t i = 0; i < word_count; ++i) {
    const std::string word{word_at(i)};
    CAPTURE(word);
    for (std::size_t letters = 3; letters <= word.size(); ++letters)
      CHECK(complete_word(word.substr(0, letters)) == word);
    CHECK(complete_word(word + "q").empty());
  }
  CHECK(complete_word("ABA") == complete_word("aba"));
  CHECK(complete_word("").empty());
  CHECK(complete_word("a").empty());  // several
  CHECK(complete_word("zzz").empty());
  CHECK(complete_word("ab-").empty());
}

TEST_CASE("three words are read however they are typed, and the wrong one is told",
          "[control][session]") {
  const auto text_of = [](std::string_view typed) {
    const auto words = read_words(typed);
    if (!words) return std::string{"no words"};
    std::string text;
    for (const std::string_view word : words->words) text += std::string{word} + ",";
    return text;
  };
  const std::string first{word_at(0)}, second{word_at(1000)}, third{word_at(2047)};
  const std::string meant = first + "," + second + "," + third + ",";
  for (const char* const between : {" ", "-", ".", "  ", " - ", "_", "\t"})
    CHECK(text_of(first + between + second + between + third) == meant);
  CHECK(text_of("\n " + first + "-" + second + " " + third + " \r\n") == meant);
  CHECK(text_of(first.substr(0, 3) + " " + second.substr(0, 3) + " " + third.substr(0, 3)) ==
        meant);
  std::string capitals = first + "-" + second + "-" + third;
  std::ranges::transform(capitals, capitals.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  CHECK(text_of(capitals) == meant);
  CHECK(read_words(meant.substr(0, 0) + first + " " + second + " " + third)->first_wrong() == 0);
  CHECK(read_words("zzz " + second + " " + third)->first_wrong() == 1);
  CHECK(read_words(first + " " + second.substr(0, 2) + " " + third)->first_wrong() == 2);
  CHECK(read_words(first + " " + second + " " + third + "x")->first_wrong() == 3);
  for (const std::string& other :
       {std::string{}, first, first + " " + second,
        first + " " + second + " " + third + " " + first,
        std::string{"correct horse battery staple"}, first + " " + second + " 12345",
        std::string{"abcd-efgh-ijkl-mnop-qrst-uvwx-yz23"},
        std::string{"uncharacteristic horse days"}})
    CHECK(text_of(other) == "no words");
}
