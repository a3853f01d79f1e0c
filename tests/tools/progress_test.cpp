// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   the progress line fits its terminal, and shows the time that is left on all but absurd
// ones. Method: the line for sizes, rates and spans over the whole range that a transfer can have,
// at each width. Bounds: one column less than the terminal has: in the last one some begin a new
// line.
#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>

#include "control/transfer/account/time_left.hpp"
#include "engine/base/units.hpp"
#include "tools/onehop/text/progress.hpp"

namespace onehop::tool {

namespace {

api::Progress view_of(api::Phase phase, std::uint64_t done = 0, std::uint64_t expected = 0,
                      Nanos elapsed = {}) {
  api::Progress view;
  view.phase = phase;
  view.bytes_done = done;
  view.bytes_expected = expected;
  view.elapsed_ns = elapsed.count();
  view.is_all_known = true;
  return view;
}

}  // namespace

TEST_CASE("the progress line fits into 80 columns with all that it has to tell",
          "[tools][progress]") {
  for (const api::Phase phase : {api::Phase::transferring, api::Phase::verifying, api::Phase::done})
    for (const std::uint64_t total :
         {1ULL, 999ULL, 9'990'000ULL, 1'073'741'824ULL, 999'400'000'000'000ULL})
      for (const std::uint64_t permille : {0U, 1U, 500U, 999U, 1000U})
        for (const Nanos elapsed : {Nanos{1ms}, Nanos{7s}, Nanos{3h}, Nanos{90h}}) {
          api::Progress view = view_of(phase, total / 1000 * permille, total, elapsed);
          for (const std::uint64_t files : {1ULL, 2ULL, 99'999ULL, 999'499ULL, 4'294'967'295ULL})
            for (const bool is_all : {true, false}) {
              view.files_done = view.files_total = files;
              view.is_all_known = is_all;
              view.eta_seconds = is_all ? std::optional{359'000.0} : std::nullopt;
              const std::string line = ProgressLine::line(view, 80);
              CAPTURE(line);
              CHECK(line.size() < 80);
              CHECK(line.starts_with(name_of(phase)));
              for (const char* word : {" % of ", "  now ", "  ETA "})
                CHECK(line.find(word) != std::string::npos);
              CHECK(line.find(files == 1 ? "  avg "
                              : is_all   ? " files  "
                                         : "+ files  ") != std::string::npos);
            }
        }
}

TEST_CASE("the progress line says what was measured", "[tools][progress]") {
  api::Progress view = view_of(api::Phase::transferring, 512'000'000, 1'073'741'824, 7s);
  view.eta_seconds = 8;
  view.goodput_bps = 601'000'000;
  CHECK(ProgressLine::line(view, 80) ==
        "transferring  48 % of 1.07 GB  now 601 Mbit/s  avg 585 Mbit/s  ETA 0:08");
  view.files_done = 1200;
  view.files_total = 123'456;
  CHECK(ProgressLine::line(view, 80) ==
        "transferring  48 % of 1.07 GB  1200/123k files  now 601 Mbit/s  ETA 0:08");
  view.link_down_ns = 8'000'000'000;
  CHECK(ProgressLine::line(view, 80) == "link down for 0:08, goes on by itself");
  CHECK(ProgressLine::line(view, 20).size() == 19);
  view.link_down_ns.reset();
  view.is_all_known = false;
  view.eta_seconds.reset();
  CHECK(ProgressLine::line(view, 80) ==
        "transferring  48 % of 1.07 GB  1200/123k+ files  now 601 Mbit/s  ETA -:--");
  api::Progress last = view_of(api::Phase::verifying, 1'073'741'824, 1'073'741'824, 15s);
  last.eta_seconds = 0;
  CHECK(ProgressLine::line(last, 80) ==
        "verifying  99 % of 1.07 GB  now 0 bit/s  avg 573 Mbit/s  ETA 0:00");
  last.eta_seconds = 400'000;
  CHECK(ProgressLine::line(last, 80).ends_with("  ETA -:--"));
  api::Progress empty = view_of(api::Phase::transferring, 0, 0, 1s);
  empty.files_done = 1;
  empty.files_total = 4;
  CHECK(ProgressLine::line(empty, 80) ==
        "transferring  25 % of 0 B  1/4 files  now 0 bit/s  ETA -:--");
  CHECK(ProgressLine::line(view_of(api::Phase::waiting_for_accept), 80) == "waiting for accept");
  last = view_of(api::Phase::transferring, 500, 500);
  last.bytes_to_compare = 2'000'000'000;
  CHECK(ProgressLine::line(last, 80) == "comparing what is there: 2.00 GB left");
  CHECK(ProgressLine::line(last, 20).size() == 19);
  last.bytes_done = 499;
  CHECK(ProgressLine::line(last, 80).starts_with("transferring"));
}

TEST_CASE("a narrow terminal loses the average first and the time that is left last",
          "[tools][progress]") {
  api::Progress view = view_of(api::Phase::transferring, 512'000'000, 1'073'741'824, 7s);
  view.eta_seconds = 8;
  CHECK(ProgressLine::line(view, 60) == "transferring  48 % now 0 bit/s  ETA 0:08");
  CHECK(ProgressLine::line(view, 40) == " 48 % now 0 bit/s  ETA 0:08");
  CHECK(ProgressLine::line(view, 20) == " 48 % ETA 0:08");
  CHECK(ProgressLine::line(view, 10) == "ETA 0:08");
  for (std::size_t columns = 0; columns < 130; ++columns) {
    CHECK(ProgressLine::line(view, columns).size() < std::max<std::size_t>(columns, 1));
    CHECK(ProgressLine::line(view_of(api::Phase::waiting_for_accept), columns).size() <
          std::max<std::size_t>(columns, 1));
  }
}

TEST_CASE("the time that is left is the bytes', or that of small files where it is longer",
          "[tools][progress]") {
  using transfer::time_left;
  constexpr double small = 1000, large = 1e9;  // bytes per file that is done now
  CHECK(time_left({1'000'000, 0}, {1000, 0}) == 1000);
  CHECK(time_left({1'000'000, 10}, {100 * small, 100}) == 10);    // the bytes take longer
  CHECK(time_left({1'000'000, 5000}, {100 * small, 100}) == 50);  // the files do
  CHECK(time_left({1'000'000, 5000}, {large, 1}) == 0.001);       // one large one says nothing
  CHECK(time_left({1'000'000, 5000}, {1e6, 0}) == 1);
  CHECK(time_left({0, 50}, {0, 100}) == 0.5);  // all bytes came, and files wait for the disk
  CHECK(time_left({0, 50}, {large, 1}) == 50);
  CHECK(time_left({0, 0}, {0, 0}) == 0);
  CHECK_FALSE(time_left({1, 0}, {0, 0}).has_value());
  CHECK_FALSE(time_left({1, 50}, {0, 100}).has_value());
  CHECK_FALSE(time_left({0, 1}, {1000, 0}).has_value());
}

}  // namespace onehop::tool
