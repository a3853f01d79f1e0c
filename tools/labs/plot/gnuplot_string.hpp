// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// in_quotes: any text as a gnuplot string. In single quotes gnuplot replaces and runs nothing; in
// double quotes it runs what stands between backquotes.
#pragma once

#include <string>
#include <string_view>

namespace onehop::plot {

[[nodiscard]] inline std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string{"''"} : std::string{c};
  return out + "'";
}

}  // namespace onehop::plot
