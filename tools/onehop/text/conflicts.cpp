// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/text/conflicts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/onehop/text/quantity.hpp"
#include "tools/onehop/text/report.hpp"

namespace onehop::tool {

namespace {

std::size_t rows_of(std::string_view text, std::size_t columns) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::size_t rows = std::max<std::size_t>(1, (end + columns - 1) / columns);
  return end == text.size() ? rows : rows + rows_of(text.substr(end + 1), columns);
}

}  // namespace

std::string offered_text(const api::Offer::File& file) {
  return fmt::format("'{}', {}", file.name,
                     file.kind == api::Offer::Kind::folder    ? "a folder"
                     : file.kind == api::Offer::Kind::symlink ? "a link"
                                                              : format_bytes(file.bytes));
}

std::string conflict_line(const api::Offer::File& file) {
  std::string line = fmt::format("  '{}': {}", file.name, file.conflict);
  if (!file.is_regular) return line + fmt::format(", {} offered", format_bytes(file.bytes));
  if (file.existing == file.bytes)
    return line + fmt::format(", {} like the one offered", format_bytes(file.bytes));
  return line + fmt::format(", {} here, {} offered", format_bytes(file.existing),
                            format_bytes(file.bytes));
}

std::vector<std::size_t> pages_of(std::span<const std::string> lines, std::size_t rows,
                                  std::size_t columns) {
  constexpr std::size_t rows_for_question = 2;
  const std::size_t rows_max = std::max(rows, rows_for_question + 1) - rows_for_question;
  std::vector<std::size_t> pages;
  std::size_t used = 0;
  for (const std::string& line : lines) {
    const std::size_t needed = rows_of(line, columns);
    if (pages.empty() || used + needed > rows_max) {
      pages.push_back(0);
      used = 0;
    }
    ++pages.back();
    used += needed;
  }
  return pages;
}

std::string offer_line(const api::Offer& offer) {
  const std::string who =
      offer.device.empty() ? offer.peer : fmt::format("'{}' ({})", offer.device, offer.peer);
  std::string line = fmt::format("{} offers {} file{}, {}, into {}", who, offer.files_total,
                                 offer.files_total == 1 ? "" : "s", format_bytes(offer.bytes_total),
                                 offer.directory);
  if (offer.free_bytes > 0) line += fmt::format(" ({} free)", format_bytes(offer.free_bytes));
  if (offer.is_part) line += fmt::format(", and these are the first {}", offer.files.size());
  if (offer.conflicts > 0) line += fmt::format("; names that exist there: {}", offer.conflicts);
  return line;
}

api::Answer ask_about(const Terminal& terminal, const api::Offer& offer) {
  std::vector<std::string> lines{offer_line(offer)};
  const bool is_whole = offer.conflicts == 0;  // else what exists is the question
  for (const api::Offer::File& file : offer.files) {
    if (!file.conflict.empty()) lines.push_back(conflict_line(file));
    if (is_whole) lines.push_back("  " + offered_text(file));
  }
  std::ranges::transform(lines, lines.begin(), fitted);
  Terminal::discard_input();
  std::size_t shown = 0;
  bool is_all = false;
  for (const std::size_t count : pages_of(lines, Terminal::rows(), Terminal::columns())) {
    if (shown > 0 && !is_all) {
      Terminal::print(fmt::format(
          "-- {} of {}; Enter: more, a: all the rest, {}anything else refuses: ", shown - 1,
          lines.size() - 1, is_whole ? "y: take them, " : ""));
      const auto answer = terminal.wait_line();
      if (is_whole && answer == "y") return api::Answer::accept;
      if (!answer || (!answer->empty() && *answer != "a")) return api::Answer::refuse;
      is_all = *answer == "a";
    }
    for (std::size_t end = shown + count; shown < end; ++shown)
      Terminal::print(lines[shown] + "\n");
  }
  if (is_whole) {
    Terminal::print("Take them? [y]es; Enter or anything else refuses: ");
    return terminal.wait_line() == "y" ? api::Answer::accept : api::Answer::refuse;
  }
  Terminal::print(
      fmt::format("[r]esume, [s]kip, re[n]ame, [o]verwrite {}; Enter or anything else refuses: ",
                  offer.conflicts == 1 ? "it" : "them"));
  const auto answer = terminal.wait_line();
  if (answer == "r") return api::Answer::resume;
  if (answer == "s") return api::Answer::skip;
  if (answer == "n") return api::Answer::rename;
  if (answer == "o") return api::Answer::overwrite;
  return api::Answer::refuse;
}

}  // namespace onehop::tool
