// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Bytes from and to hexadecimal text, for test vectors.
#pragma once

#include <array>
#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onehop::test {

inline std::vector<std::byte> from_hex(std::string_view text) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoi(std::string{text.substr(i, 2)}, nullptr, 16)));
  return out;
}

template <std::size_t N>
std::array<std::byte, N> array_from_hex(std::string_view text) {
  std::array<std::byte, N> out{};
  const auto bytes = from_hex(text);
  for (std::size_t i = 0; i < N; ++i) out[i] = bytes.at(i);
  return out;
}

inline std::string to_hex(std::span<const std::byte> bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const std::byte b : bytes) {
    out += digits[std::to_integer<std::size_t>(b >> 4)];
    out += digits[std::to_integer<std::size_t>(b & std::byte{15})];
  }
  return out;
}

inline std::vector<std::byte> random_bytes(std::mt19937_64& random, std::size_t size) {
  std::vector<std::byte> out(size);
  for (auto& b : out) b = static_cast<std::byte>(random());
  return out;
}

}  // namespace onehop::test
