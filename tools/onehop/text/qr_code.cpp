// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/text/qr_code.hpp"

#if ONEHOP_HAS_QRENCODE
#include <qrencode.h>
#endif

#include <algorithm>
#include <memory>

namespace onehop::tool {

#if ONEHOP_HAS_QRENCODE
std::string qr_code(const std::string& text) {
  const std::unique_ptr<QRcode, void (*)(QRcode*)> code{
      QRcode_encodeString8bit(text.c_str(), 0, QR_ECLEVEL_L), &QRcode_free};
  if (!code) return {};
  // ISO/IEC 18004: four light modules around it, else readers do not find it.
  constexpr int margin = 4;
  const auto is_dark = [&](int row, int column) {
    const int width = code->width;
    if (row < 0 || column < 0 || row >= width || column >= width) return false;
    return (code->data[row * width + column] & 1) != 0;
  };
  // White on black at any colours of the terminal: SGR 97 (bright white) on 40 (black). A block is
  // light, so that a dark module is a gap.
  std::string out;
  for (int row = -margin; row < code->width + margin; row += 2) {
    out += "  \x1b[97;40m";
    for (int column = -margin; column < code->width + margin; ++column) {
      const bool is_top = !is_dark(row, column), is_bottom = !is_dark(row + 1, column);
      out += is_top && is_bottom ? "█" : is_top ? "▀" : is_bottom ? "▄" : " ";
    }
    out += "\x1b[0m\n";
  }
  return out;
}
#else
std::string qr_code(const std::string&) { return {}; }
#endif

std::string beside(const std::string& picture, const std::vector<std::string>& lines) {
  std::string out;
  std::size_t row = 0, begin = 0;
  for (std::size_t end; (end = picture.find('\n', begin)) != std::string::npos; begin = end + 1) {
    out += picture.substr(begin, end - begin);
    if (row < lines.size() && !lines[row].empty()) out += "  " + lines[row];
    out += '\n';
    ++row;
  }
  for (; row > 0 && row < lines.size(); ++row) out += lines[row] + '\n';
  return out;
}

std::pair<std::size_t, std::size_t> size_of(const std::string& picture) {
  std::size_t rows = 0, columns = 0, column = 0;
  bool is_escaped = false;  // a sequence of ECMA-48, which ends with a letter
  for (const char c : picture) {
    if (c == '\x1b') is_escaped = true;
    const bool is_first_byte = (c & 0xc0) != 0x80;  // of a character
    if (c == '\n') {
      ++rows;
      column = 0;
    } else if (!is_escaped && is_first_byte) {
      columns = std::max(columns, ++column);
    }
    if (c >= '@' && c <= 'z' && c != '[') is_escaped = false;
  }
  return {rows, columns};
}

}  // namespace onehop::tool
