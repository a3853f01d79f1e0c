// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/conflicts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/file/manifest.hpp"
#include "tools/onehop/quantity.hpp"

namespace onehop::tool {

std::string conflict_line(const file::ManifestEntry& entry, const file::Conflict& conflict) {
  std::string line = fmt::format("  '{}': {}", file::display_name(entry.name), conflict.cause);
  if (!conflict.is_regular) return line + fmt::format(", {} offered", format_bytes(entry.size));
  if (conflict.size == entry.size) return line + fmt::format(", {} like the one offered", format_bytes(entry.size));
  return line + fmt::format(", {} here, {} offered", format_bytes(conflict.size), format_bytes(entry.size));
}

std::vector<std::size_t> pages_of(std::span<const std::string> lines, std::size_t rows, std::size_t columns) {
  constexpr std::size_t rows_for_question = 2;
  const std::size_t rows_max = std::max(rows, rows_for_question + 1) - rows_for_question;
  std::vector<std::size_t> pages;
  std::size_t used = 0;
  for (const std::string& line : lines) {
    const std::size_t needed = std::max<std::size_t>(1, (line.size() + columns - 1) / columns);
    if (pages.empty() || used + needed > rows_max) {
      pages.push_back(0);
      used = 0;
    }
    ++pages.back();
    used += needed;
  }
  return pages;
}

std::optional<file::OnExist> ask_about(const Terminal& terminal, const std::string& headline, const file::Manifest& manifest,
                                       std::span<const file::Conflict> conflicts) {
  std::vector<std::string> lines{headline};
  for (const file::Conflict& conflict : conflicts) lines.push_back(conflict_line(manifest.files[conflict.file], conflict));
  Terminal::discard_input();
  std::size_t shown = 0;
  bool is_all = false;
  for (const std::size_t count : pages_of(lines, Terminal::rows(), Terminal::columns())) {
    if (shown > 0 && !is_all) {
      Terminal::print(fmt::format("-- {} of {}; Enter: more, a: all the rest, anything else refuses: ", shown - 1, conflicts.size()));
      const auto answer = terminal.wait_line();
      if (!answer || (!answer->empty() && *answer != "a")) return std::nullopt;
      is_all = *answer == "a";
    }
    for (std::size_t end = shown + count; shown < end; ++shown) Terminal::print(lines[shown] + "\n");
  }
  Terminal::print(fmt::format("[r]esume, [s]kip, re[n]ame, [o]verwrite {}; anything else refuses: ",
                              conflicts.size() == 1 ? "it" : fmt::format("these {}", conflicts.size())));
  const auto answer = terminal.wait_line();
  if (answer == "r") return file::OnExist::resume;
  if (answer == "s") return file::OnExist::skip;
  if (answer == "n") return file::OnExist::rename;
  if (answer == "o") return file::OnExist::overwrite;
  return std::nullopt;
}

}  // namespace onehop::tool
