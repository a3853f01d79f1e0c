// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Files with holes, and files whose size does not say how long they are.
#include "engine/list/tree_scan.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

constexpr std::size_t blocks_total = 12;

std::uint64_t disk_bytes(const fs::path& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

/// Whether this file system gives the room of a range back at all.
bool has_holes(const fs::path& folder) {
  write_file(folder / "probe", std::string(1 << 20, 'x'));
  const int fd = ::open((folder / "probe").c_str(), O_RDWR);
  const bool has = ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 19) == 0;
  ::close(fd);
  fs::remove(folder / "probe");
  return has;
}

}  // namespace

TEST_CASE("C4 holes are kept, also where a part had other bytes before", "[engine][file]") {
  const TempFolder from, to;
  if (!has_holes(to.path())) {
    WARN("this file system has no holes");
    return;
  }
  const std::string path = (from / "f").string();
  std::string data(blocks_total * block_bytes + 100, '\0');
  data.replace(2 * block_bytes, block_bytes, random_bytes(block_bytes, 43));  // a whole block
  data.replace(5 * block_bytes + 65'536, 4096,
               random_bytes(4096, 44));  // a page in a block of zeros
  data[7 * block_bytes + 8192] = 'x';    // a byte
  write_file(path, data);
  SECTION("in one go") { CHECK(send({path}, to.path()).done.size() == 1); }
  SECTION("after a kill, with rot in the part") {
    kill_at({path}, to.path(), OnExist::ask, at_block(0, 9));
    {
      std::fstream part{to / part_name, std::ios::binary | std::ios::in | std::ios::out};
      part.seekp(3 * block_bytes + 5);
      part << "rot";
    }
    CHECK(send({path}, to.path()).blocks_skipped == 8);
  }
  CHECK(read_file(to / "f") == data);
  CHECK(disk_bytes(to / "f") <= block_bytes + 10 * 4096);
  CHECK(names_in(to.path()) == std::vector<std::string>{"f"});
}

TEST_CASE(
    "C4 a file whose content is not as long as its size says is refused or ends, never verified",
    "[engine][file]") {
  const TempFolder to;
  SECTION("/proc tells 0") {
    const auto files = check_arguments(std::vector<std::string>{"/proc/self/status"});
    REQUIRE(files.has_error());
    CHECK(files.error().message().find("/proc") != std::string::npos);
  }
  SECTION("an empty file is one") {
    write_file(to / "empty", "");
    CHECK(check_arguments(std::vector<std::string>{(to / "empty").string()}).has_value());
  }
  SECTION("/sys tells a page") {
    const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";
    if (!fs::exists(path)) {
      WARN(path + " is not here");
      return;
    }
    const Outcome outcome = send({path}, to.path());
    REQUIRE(outcome.source_failure.has_value());
    CHECK(outcome.source_failure->failure == FileFailure::source_length);
    CHECK(outcome.done.empty());
  }
}

// Goal:   files that the kernel makes up as they are read end one session and not one each.
// Method: those of /sys and /proc/sys, an empty file and one that is a hole, looked at again as
//         after the first that failed. Bounds: exact; none is left whose content is of another
//         length.
TEST_CASE("C4 the second look finds all files that are not as long as their size says",
          "[engine][file]") {
  for (const char* const folder : {"/sys/kernel/mm", "/proc/sys/kernel"}) {
    if (!fs::is_directory(folder)) {
      WARN("not tested with " << folder << ": it is not there");
      continue;
    }
    const std::vector<std::string> paths{folder};
    const Result<ScanVolume> found = scan(paths, {});
    REQUIRE(found.has_value());
    std::vector<ScanProblem> problems;
    const Result<SourceFiles> again = look_again(found.value().source, problems);
    REQUIRE(again.has_value());
    CHECK(found.value().counts.files > 20);
    CHECK(problems.size() > 20);
    CHECK(std::ranges::count(problems, ScanProblemKind::changed, &ScanProblem::kind) > 20);
    for (std::size_t i = 0; i < again.value().files.size(); ++i) {
      const ManifestEntry& entry = again.value().manifest.files[i];
      if (entry.kind != EntryKind::file) continue;
      std::ifstream in{again.value().path_of(i), std::ios::binary};
      const std::string text{std::istreambuf_iterator<char>{in}, {}};
      CAPTURE(entry.name);
      CHECK(text.size() == entry.size);
    }
  }
  const TempFolder folder;
  write_file(folder / "empty", "");
  write_file(folder / "hole", "");
  fs::resize_file(folder / "hole", 1'000'000);
  const std::vector<std::string> paths{folder.path().string()};
  const Result<ScanVolume> found = scan(paths, {});
  REQUIRE(found.has_value());
  std::vector<ScanProblem> problems;
  const Result<SourceFiles> again = look_again(found.value().source, problems);
  REQUIRE(again.has_value());
  CHECK(problems.empty());
  CHECK(again.value().files.size() == found.value().source.files.size());
}
