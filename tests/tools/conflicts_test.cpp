// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   every conflict is a line that cannot act on the terminal, and every line fits on a page
// together with the question.
#include <catch2/catch.hpp>

#include <numeric>

#include "engine/base/display_name.hpp"
#include "tools/onehop/text/conflicts.hpp"

namespace onehop::tool {

TEST_CASE("what is offered is named by its size, a folder and a link by what they are",
          "[tools][conflicts]") {
  api::Offer::File file{.name = "a", .bytes = 0};
  CHECK(offered_text(file) == "'a', 0 B");
  file.kind = api::Offer::Kind::folder;
  CHECK(offered_text(file) == "'a', a folder");
  file.kind = api::Offer::Kind::symlink;
  CHECK(offered_text(file) == "'a', a link");
}

TEST_CASE("a conflict's line has the escaped name, the cause and both sizes",
          "[tools][conflicts]") {
  api::Offer::File file;
  file.name = display_name("a\x1b[2J\nb");
  file.bytes = 2000;
  file.conflict = "that name exists";
  file.is_regular = true;
  file.existing = 1000;
  CHECK(conflict_line(file) ==
        "  'a\\u{1B}[2J\\u{A}b': that name exists, 1.00 kB here, 2.00 kB offered");
  file.existing = 2000;
  CHECK(conflict_line(file).ends_with("2.00 kB like the one offered"));
  file.is_regular = false;
  file.conflict = "that name exists and is not a regular file";
  CHECK(conflict_line(file).ends_with("not a regular file, 2.00 kB offered"));
}

TEST_CASE("pages hold every line once, and leave two rows for the question", "[tools][conflicts]") {
  for (const std::size_t rows : {1U, 2U, 3U, 4U, 24U, 500U})
    for (const std::size_t columns : {1U, 20U, 80U, 1000U})
      for (const std::size_t length : {0U, 1U, 79U, 80U, 81U, 4095U}) {
        const std::vector<std::string> lines(100, std::string(length, 'x'));
        const auto pages = pages_of(lines, rows, columns);
        CAPTURE(rows, columns, length);
        CHECK(std::accumulate(pages.begin(), pages.end(), std::size_t{0}) == lines.size());
        const std::size_t rows_of_line = std::max<std::size_t>(1, (length + columns - 1) / columns);
        for (const std::size_t count : pages) {
          CHECK(count >= 1);
          CHECK((count == 1 || count * rows_of_line + 2 <= rows));
        }
      }
  CHECK(pages_of({}, 24, 80).empty());
}

}  // namespace onehop::tool
