// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   the progress line fits its terminal, and shows the time that is left on all but absurd
// ones. Method: the line for sizes, rates and spans over the whole range that a transfer can have,
// at each width. Bounds: one column less than the terminal has: in the last one some begin a new
// line.
#include <catch2/catch.hpp>

#include <algorithm>

#include "engine/base/units.hpp"
#include "tools/onehop/progress.hpp"

namespace onehop::tool {

namespace {

api::Progress view_of(std::string phase, std::uint64_t done = 0, std::uint64_t expected = 0,
                      Nanos elapsed = {}) {
  api::Progress view;
  view.phase = std::move(phase);
  view.bytes_done = done;
  view.bytes_expected = expected;
  view.elapsed_ns = elapsed.count();
  return view;
}

}  // namespace

TEST_CASE("the progress line fits into 80 columns with all that it has to tell",
          "[tools][progress]") {
  for (const char* phase : {"transferring", "verifying", "done"})
    for (const std::uint64_t total :
         {1ULL, 999ULL, 9'990'000ULL, 1'073'741'824ULL, 999'400'000'000'000ULL})
      for (const std::uint64_t permille : {0U, 1U, 500U, 999U, 1000U})
        for (const Nanos elapsed : {Nanos{1ms}, Nanos{7s}, Nanos{3h}, Nanos{90h}}) {
          const std::string line =
              ProgressLine{false}.line(view_of(phase, total / 1000 * permille, total, elapsed), 80);
          CAPTURE(line);
          CHECK(line.size() < 80);
          CHECK(line.starts_with(phase));
          for (const char* word : {" % of ", "  now ", "  avg ", "  ETA "})
            CHECK(line.find(word) != std::string::npos);
        }
}

TEST_CASE("the progress line says what was measured", "[tools][progress]") {
  const ProgressLine progress{false};
  const api::Progress view = view_of("transferring", 512'000'000, 1'073'741'824, 7s);
  CHECK(progress.line(view, 80) ==
        "transferring  48 % of 1.07 GB  now 0 bit/s  avg 585 Mbit/s  ETA 0:08");
  CHECK(progress.line(view_of("verifying", 1'073'741'824, 1'073'741'824, 15s), 80) ==
        "verifying  99 % of 1.07 GB  now 0 bit/s  avg 573 Mbit/s  ETA 0:00");
  CHECK(progress.line(view_of("transferring", 0, 1'000'000, 1s), 80).ends_with("  ETA -:--"));
  CHECK(progress.line(view_of("transferring", 1, 1'000'000'000, 100s), 80).ends_with("  ETA -:--"));
  CHECK(progress.line(view_of("waiting_for_accept"), 80) == "waiting for accept");
}

TEST_CASE("a narrow terminal loses the average first and the time that is left last",
          "[tools][progress]") {
  const ProgressLine progress{false};
  const api::Progress view = view_of("transferring", 512'000'000, 1'073'741'824, 7s);
  CHECK(progress.line(view, 60) == "transferring  48 % now 0 bit/s  ETA 0:08");
  CHECK(progress.line(view, 40) == " 48 % now 0 bit/s  ETA 0:08");
  CHECK(progress.line(view, 20) == " 48 % ETA 0:08");
  CHECK(progress.line(view, 10) == "ETA 0:08");
  for (std::size_t columns = 0; columns < 130; ++columns) {
    CHECK(progress.line(view, columns).size() < std::max<std::size_t>(columns, 1));
    CHECK(progress.line(view_of("waiting_for_accept"), columns).size() <
          std::max<std::size_t>(columns, 1));
  }
}

}  // namespace onehop::tool
