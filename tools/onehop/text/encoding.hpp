// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What text files that people write must not be in. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace onehop::tool {

/// encoding_fault is why a text cannot be read as UTF-8 (or as bytes, of which ASCII is a part), or
/// empty. Windows' editors and shells write UTF-16.
[[nodiscard]] inline std::string encoding_fault(std::string_view text) {
  using namespace std::string_view_literals;
  if (text.starts_with("\xFF\xFE\0\0"sv) || text.starts_with("\0\0\xFE\xFF"sv))
    return "it is in UTF-32";
  if (text.starts_with("\xFF\xFE"sv) || text.starts_with("\xFE\xFF"sv)) return "it is in UTF-16";
  if (text.find('\0') != std::string_view::npos)
    return "it has NUL bytes, as a text in UTF-16 without a mark has";
  return {};
}
inline constexpr const char* encoding_hint = "Save it in UTF-8";

}  // namespace onehop::tool
