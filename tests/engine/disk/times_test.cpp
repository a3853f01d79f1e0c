// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Times of files, far from today.
#include "engine/disk/file_bytes.hpp"
#include "engine/list/tree_scan.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

constexpr std::int64_t year_2262_s = 9'223'372'036, ext4_last_s = 15'032'385'535;

bool is_same(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

TEST_CASE("P6 a time from 1901 to 2486 is kept to the nanosecond", "[engine][file]") {
  for (const std::int64_t second :
       {time_min_s, std::int64_t{-2}, std::int64_t{-1}, std::int64_t{0},
        std::int64_t{1'700'000'000}, year_2262_s, ext4_last_s, time_max_s})
    for (const long ns : {0L, 1L, 854'775'807L, 854'775'808L, 999'999'999L}) {
      const timespec time{.tv_sec = second, .tv_nsec = ns};
      CAPTURE(second, ns);
      CHECK(is_same(time_of(ns_of(time)), time));
    }
  // As it was on the wire before.
  CHECK(ns_of({.tv_sec = -2, .tv_nsec = 499'999'999}) == -1'500'000'001);
  CHECK(ns_of({.tv_sec = 1, .tv_nsec = 5}) == 1'000'000'005);
}

TEST_CASE("P6 a time beyond becomes the nearest that there is", "[engine][file]") {
  for (const std::int64_t second : {time_max_s + 1, std::numeric_limits<std::int64_t>::max()})
    CHECK(is_same(time_of(ns_of({.tv_sec = second, .tv_nsec = 1})),
                  {.tv_sec = time_max_s, .tv_nsec = 999'999'999}));
  for (const std::int64_t second : {time_min_s - 1, std::numeric_limits<std::int64_t>::min()})
    CHECK(is_same(time_of(ns_of({.tv_sec = second, .tv_nsec = 1})),
                  {.tv_sec = time_min_s, .tv_nsec = 0}));
}

// Goal:   the receiver's files and folders have the sender's times, whatever the year. Method: a
//         tree on tmpfs, which keeps any. Small files are packed, one is not. Bounds: exact.
TEST_CASE("P6 files of every year arrive with their times", "[engine][file]") {
  const TempFolder from{in_memory()}, to{in_memory()};
  const std::vector<std::int64_t> seconds{time_min_s, -1, year_2262_s + 1, ext4_last_s, time_max_s};
  fs::create_directory(from / "d");
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const std::string small = "d/s" + std::to_string(i), large = "d/l" + std::to_string(i);
    write_file(from / small, "x");
    write_file(from / large, std::string(packed_bytes_max + 1, 'x'));
  }
  const auto times_at = [](std::int64_t second) {
    return std::array{timespec{1, 0}, timespec{second, 7}};
  };
  for (std::size_t i = 0; i < seconds.size(); ++i)
    for (const char* const kind : {"d/s", "d/l"})
      REQUIRE(::utimensat(AT_FDCWD, (from / (kind + std::to_string(i))).c_str(),
                          times_at(seconds[i]).data(), 0) == 0);
  REQUIRE(::utimensat(AT_FDCWD, (from / "d").c_str(), times_at(ext4_last_s).data(), 0) == 0);
  const std::vector<std::string> paths{(from / "d").string()};
  Result<ScanVolume> found = scan(paths, {});
  REQUIRE(found.has_value());
  const Outcome outcome = send_files(std::move(found.value().source), to.path(), OnExist::ask, {});
  CHECK(outcome.done.size() == 2 * seconds.size() + 1);
  for (const std::string& name : names_in(from.path())) {
    struct stat is {
    }, was{};
    REQUIRE(::stat((to / name).c_str(), &is) == 0);
    REQUIRE(::stat((from / name).c_str(), &was) == 0);
    CAPTURE(name, was.st_mtim.tv_sec, is.st_mtim.tv_sec);
    CHECK(is_same(is.st_mtim, was.st_mtim));
  }
}
