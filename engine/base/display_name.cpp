// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/display_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace onehop {

namespace {

struct Decoded {
  std::uint32_t code_point = 0;
  std::size_t bytes = 0;  ///< 0: not valid UTF-8 here
};

/// Strict UTF-8: no overlong form, no surrogate, nothing above U+10FFFF.
//= RFC 3629 section 4
Decoded decode(std::string_view text) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  std::uint32_t code_point = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((at(i) & 0xC0) != 0x80) return {};
    code_point = code_point << 6 | (at(i) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  if (code_point < smallest[bytes] || code_point > 0x10FFFF) return {};
  if (code_point >= 0xD800 && code_point <= 0xDFFF) return {};
  return {code_point, bytes};
}

/// What a terminal acts on or does not show: controls, bidirectional, zero width, separators, tags.
bool is_deceptive(std::uint32_t c) noexcept {
  // First and last of each range.
  constexpr std::uint32_t ranges[][2] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},
                                         {0x61C, 0x61C},   {0x180E, 0x180E}, {0x200B, 0x200F},
                                         {0x2028, 0x202E}, {0x2060, 0x206F}, {0xFEFF, 0xFEFF},
                                         {0xFFF9, 0xFFFB}, {0xFFFE, 0xFFFF}, {0xE0000, 0xE0FFF}};
  return std::ranges::any_of(ranges,
                             [c](const auto& range) { return c >= range[0] && c <= range[1]; });
}

}  // namespace

std::string display_name(std::string_view name) {
  std::string shown;
  while (!name.empty()) {
    const Decoded next = decode(name);
    if (next.bytes == 0)
      shown += fmt::format("\\x{:02X}", static_cast<unsigned char>(name[0]));
    else if (next.code_point == '\\')
      shown += "\\\\";
    else if (is_deceptive(next.code_point))
      shown += fmt::format("\\u{{{:X}}}", next.code_point);
    else
      shown += name.substr(0, next.bytes);
    name.remove_prefix(next.bytes == 0 ? 1 : next.bytes);
  }
  return shown;
}

}  // namespace onehop
