// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Inputs for targets that read texts of keys and values: the project's own files, with some of
// their values replaced by those that readers trip over.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/base/result.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace onehop::fuzz {

/// texts_in reads the files of a folder whose names end in `suffix`, in order of their names, as
/// far as they fit an input. There is at least one.
inline std::vector<std::string> texts_in(const std::string& folder, std::string_view suffix) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator{folder})
    if (entry.path().native().ends_with(suffix)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream file{path};
    std::string text{std::istreambuf_iterator<char>{file}, {}};
    if (!text.empty() && text.size() <= input_bytes_max) texts.push_back(std::move(text));
  }
  ONEHOP_CHECK(!texts.empty());
  return texts;
}

/// swap_values replaces one of the values behind a `separator`, in a quarter of the texts two, in
/// another quarter none. A value ends with its line, or before a comma or a closing brace.
inline std::string swap_values(std::string text, char separator, std::mt19937_64& random) {
  constexpr std::array<std::string_view, 30> values{
      "nan",       "inf",        "-inf",  "-1",  "0",   "1",       "2",
      "1e308",     "1e-320",     "0.001", "1e9", "64",  "1000000", "9223372036854775807",
      "\"\"",      "\"x\"",      "true",  "[]",  "[1]", "{}",      "-9223372036854775808",
      "\"1Tbit\"", "\"none\"",   "[{}]",  "4",   "256", "60000",   "18446744073709551616",
      "[\"a\"]",   "\"600Mbit\""};
  const std::array<int, 4> swaps{0, 1, 1, 2};
  for (int left = swaps[random() % swaps.size()]; left > 0; --left) {
    auto at = static_cast<std::size_t>(std::ranges::count(text, separator));
    if (at == 0) break;
    std::size_t begin = 0;
    for (at = random() % at; begin = text.find(separator, begin) + 1, at > 0; --at) {
    }
    const std::size_t end = std::min(text.find_first_of(",}\n", begin), text.size());
    text.replace(begin, end - begin, " ").insert(begin + 1, values[random() % values.size()]);
  }
  return text;
}

/// put_text copies a text into an input, as far as it fits.
inline std::size_t put_text(std::string_view text, std::span<std::byte, input_bytes_max> out) {
  text = text.substr(0, out.size());
  std::ranges::transform(text, out.begin(), [](char c) { return static_cast<std::byte>(c); });
  return text.size();
}

/// make_text is make_valid() of a target whose texts are files of the project.
inline std::size_t make_text(const std::vector<std::string>& texts, char separator,
                             std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  return put_text(swap_values(texts[random() % texts.size()], separator, random), out);
}

inline std::string text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// accepted_by gives what a reader accepted, and counts it. What it refuses is an error of the
/// user's, and says why: null.
template <class Value>
Value* accepted_by(Result<Value>& read) {
  if (read) {
    ++accepted_total;
    return &read.value();
  }
  ONEHOP_CHECK(read.error().code == ExitCode::usage);
  ONEHOP_CHECK(!read.error().cause.empty());
  return nullptr;
}

}  // namespace onehop::fuzz
