// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Conflicts: what is offered, and of it the names that exist, shown to the person at the terminal,
// all of them, before one answer for all.
//
//   Offer ─▶ [ File with a conflict.. ] ─▶ a line each, by pages ─▶ Answer for exactly those files
#pragma once

#include <span>
#include <string>
#include <vector>

#include "control/transfer/api/transfer.hpp"
#include "tools/onehop/text/terminal.hpp"

namespace onehop::tool {

/// offered_text is what is shown of one that is offered: its escaped name, and its size or kind.
[[nodiscard]] std::string offered_text(const api::Offer::File& file);

/// conflict_line is what is shown of one: its escaped name, what is wrong, and both sizes.
[[nodiscard]] std::string conflict_line(const api::Offer::File& file);

/// offer_line says who offers how much, and how much room there is.
[[nodiscard]] std::string offer_line(const api::Offer& offer);

/// pages_of says how many of the lines fit on each page of rows x columns, of which two rows are
/// left for the question. A line takes as many rows as its bytes fill, and a page has one line at
/// least.
[[nodiscard]] std::vector<std::size_t> pages_of(std::span<const std::string> lines,
                                                std::size_t rows, std::size_t columns);

/// ask_about shows every conflict, or where there is none every file, and returns the answer:
/// refuse also where it was taken back, or not all of them were looked at. May wait for as long as
/// the question stands.
[[nodiscard]] api::Answer ask_about(const Terminal& terminal, const api::Offer& offer);

}  // namespace onehop::tool
