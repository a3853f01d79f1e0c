// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Conflicts: offered names that exist, shown to the person at the terminal, all of them, before one answer for all.
//
//   Sink::prepare ─▶ [ Conflict.. ] ─▶ a line each, by pages ─▶ answer ─▶ OnExist of exactly those files
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/file/sink.hpp"
#include "tools/onehop/terminal.hpp"

namespace onehop::tool {

/// conflict_line is what is shown of one: its escaped name, what is wrong, and both sizes.
[[nodiscard]] std::string conflict_line(const file::ManifestEntry& entry, const file::Conflict& conflict);

/// pages_of says how many of the lines fit on each page of rows x columns, of which two rows are left for the question. A line
/// takes as many rows as its bytes fill, and a page has one line at least.
[[nodiscard]] std::vector<std::size_t> pages_of(std::span<const std::string> lines, std::size_t rows, std::size_t columns);

/// ask_about shows every conflict and returns the answer. Nothing: refused, taken back, or not all of them were looked at.
/// May wait for as long as the question stands.
[[nodiscard]] std::optional<file::OnExist> ask_about(const Terminal& terminal, const std::string& headline, const file::Manifest& manifest,
                                                     std::span<const file::Conflict> conflicts);

}  // namespace onehop::tool
