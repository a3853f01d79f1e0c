// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A process that may have few files open.
#include <sys/resource.h>
#include <sys/wait.h>

#include "engine/base/system/descriptors.hpp"
#include "engine/list/tree_scan.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

constexpr int files = 300;

/// In a child that may open `more` descriptors: what `run` returns, 0 to 99.
int with_descriptors(unsigned more, const std::function<int()>& run) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    const rlim_t limit = static_cast<rlim_t>(next) + more;
    const rlimit few{.rlim_cur = limit, .rlim_max = limit};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) ::_exit(100);
    ::_exit(run());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

bool says_what_is_needed(const Error& error) {
  return error.code == ExitCode::io_unavailable && error.hint.find("ulimit") != std::string::npos &&
         error.cause.find("Too many open files") != std::string::npos;
}

}  // namespace

// Goal:   few descriptors are no property of files. Method: a folder of more files than a process
//         may open, at limits from one that is roomy to one under which no folder can be read.
// Bounds: every file is listed, or the session ends with the number that is needed; never a problem
//         of a file.
TEST_CASE("C4 where descriptors are few every file is listed, or the scan says so",
          "[engine][file]") {
  const TempFolder folder;
  fs::create_directory(folder / "d");
  for (int i = 0; i < files; ++i) write_file(folder / "d" / std::to_string(i), "x");
  const std::vector<std::string> paths{(folder / "d").string()};
  const auto run = [&] {
    const Result<ScanVolume> found = scan(paths, {});
    if (found.has_error()) return says_what_is_needed(found.error()) ? 1 : 10;
    if (!found.value().problems.empty()) return 11;
    return found.value().counts.files == files ? 0 : 12;
  };
  CHECK(run() == 0);  // a sanitizer takes a descriptor for its first look at a type
  CHECK(with_descriptors(100, run) == 0);
  CHECK(with_descriptors(20, run) == 0);
  for (unsigned more = 0; more < 20; ++more) {
    CAPTURE(more);
    CHECK(with_descriptors(more, run) <= 1);
  }
  CHECK(with_descriptors(1, run) == 1);
}

TEST_CASE("C4 where descriptors are few the second look says so", "[engine][file]") {
  const TempFolder folder;
  fs::create_directories(folder / "d/e");
  for (int i = 0; i < files; ++i) write_file(folder / "d/e" / std::to_string(i), "x");
  const std::vector<std::string> paths{(folder / "d").string()};
  const Result<ScanVolume> found = scan(paths, {});
  REQUIRE(found.has_value());
  const SourceNames& names = found.value().source;
  const auto run = [&] {
    std::vector<ScanProblem> problems;
    const Result<SourceFiles> again = look_again(names, problems);
    if (again.has_error()) return says_what_is_needed(again.error()) ? 1 : 10;
    return problems.empty() ? 0 : 11;
  };
  CHECK(run() == 0);
  CHECK(with_descriptors(20, run) == 0);
  CHECK(with_descriptors(0, run) == 1);
}

TEST_CASE("a process raises its limit, and says how many it needs where it cannot",
          "[engine][file]") {
  CHECK(with_descriptors(descriptors_min / 2, [] {
          const Result<void> raised = raise_descriptor_limit();
          return raised.has_error() && says_what_is_needed(raised.error()) ? 0 : 1;
        }) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    rlimit soft{};
    if (::getrlimit(RLIMIT_NOFILE, &soft) != 0) ::_exit(1);
    const rlim_t hard = soft.rlim_max;
    soft.rlim_cur = 40;
    if (::setrlimit(RLIMIT_NOFILE, &soft) != 0 || raise_descriptor_limit().has_error()) ::_exit(2);
    ::_exit(::getrlimit(RLIMIT_NOFILE, &soft) == 0 && soft.rlim_cur == hard ? 0 : 3);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}
