// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the thread that reads folders gives, volume by volume.
#include "engine/list/scan_thread.hpp"

#include <atomic>
#include <map>
#include <numeric>
#include <semaphore>
#include <set>

#include "engine/list/folder_names.hpp"
#include "engine/list/hard_links.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

using Paths = std::vector<std::string>;

/// No volume is given for its age: which ones there are follows from the tree.
constexpr Nanos no_age = Nanos::max();

std::unique_ptr<ScanThread> started(const Paths& paths, const VolumeSizes& sizes,
                                    const ScanOptions& options = {}) {
  auto scan = ScanThread::start(paths, options, sizes);
  if (scan.has_error()) FAIL(scan.error().message());
  return std::move(scan).value();
}

ScanVolume next_of(ScanThread& scan) {
  Result<ScanVolume> next = scan.wait_next();
  if (next.has_error()) FAIL(next.error().message());
  return std::move(next).value();
}

std::vector<ScanVolume> volumes_of(ScanThread& scan) {
  std::vector<ScanVolume> volumes;
  do volumes.push_back(next_of(scan));
  while (!volumes.back().is_last);
  return volumes;
}

/// The entries of volumes one after the other.
std::vector<ManifestEntry> entries_of(const std::vector<ScanVolume>& volumes) {
  std::vector<ManifestEntry> entries;
  for (const ScanVolume& volume : volumes)
    std::ranges::copy(volume.source.manifest.files, std::back_inserter(entries));
  return entries;
}

/// wait_until_known waits until the thread has seen `entries`; it stays there if it has to.
void wait_until_known(const ScanThread& scan, std::uint64_t entries) {
  while (scan.known().entries < entries) std::this_thread::yield();
}

void write_files(const fs::path& folder, std::size_t count) {
  fs::create_directories(folder);
  for (std::size_t i = 0; i < count; ++i) write_file(folder / std::to_string(i), "x");
}

/// A tree in which everything occurs that a scan tells apart.
void make_odd_tree(const TempFolder& folder) {
  for (const char* const below : {"d/e", "d/s/t/u", "d/a/b/c", "d/left", "x"})
    fs::create_directories(folder / below);
  for (const char* const name : {"f", "d/1", "d/2", "d/.h", "d/s/3", "d/s/t/u/4", "d/s/t/u/5",
                                 "d/a/b/c/6", "d/left/7", "x/8"})
    write_file(folder / name, name);
  fs::create_symlink("1", folder / "d/link");
  fs::create_symlink("/etc/passwd", folder / "d/s/out");
  fs::create_hard_link(folder / "d/1", folder / "d/s/again");
  REQUIRE(::mkfifo((folder / "d/a/fifo").c_str(), 0600) == 0);
}

}  // namespace

// Goal:   volumes are the list, cut. Method: a tree with everything in it, several arguments, cut
// in several sizes; the whole list beside it. Bounds: exact.
TEST_CASE("volumes one after the other are the whole list", "[engine][file]") {
  const std::size_t entries_max = GENERATE(1U, 2U, 3U, 7U, 1000U);
  const std::size_t ahead_max = GENERATE(1U, 8U);
  const TempFolder folder;
  make_odd_tree(folder);
  const Paths paths{(folder / "f").string(), (folder / "d").string(),
                    (folder / "x/").string() + "/"};
  ScanOptions options{.symlinks = Symlinks::follow_inside};
  options.rules.add("left/");
  Result<ScanVolume> scanned = list::scan(paths, options);
  REQUIRE(scanned.has_value());
  const ScanVolume& whole = scanned.value();
  const auto scan = started(
      paths, {.entries_max = entries_max, .ahead_max = ahead_max, .age_max = no_age}, options);
  const std::vector<ScanVolume> volumes = volumes_of(*scan);
  CHECK(entries_of(volumes) == whole.source.manifest.files);
  std::vector<std::string> problems, wanted_problems;
  std::size_t at = 0;
  for (const ScanVolume& volume : volumes) {
    const std::size_t entries = volume.source.files.size();
    CHECK(volume.is_last == (&volume == &volumes.back()));
    CHECK((entries == entries_max || volume.is_last));
    CHECK(entries > 0);
    REQUIRE(entries == volume.source.places.size());
    for (std::size_t i = 0; i < entries; ++i, ++at) {
      CHECK(volume.source.path_of(i) == whole.source.path_of(at));
      CHECK(volume.source.places[i].is_link == whole.source.places[at].is_link);
      CHECK(volume.source.files[i].fence == whole.source.files[at].fence);
      if (&volume != &volumes.front()) CHECK_FALSE(volume.source.files[i].fd.is_open());
    }
    CHECK(volume.counts.files + volume.counts.folders == at);
    for (const ScanProblem& problem : volume.problems) problems.push_back(problem.path);
  }
  for (const ScanProblem& problem : whole.problems) wanted_problems.push_back(problem.path);
  CHECK(problems == wanted_problems);
  const ScanCounts& counts = volumes.back().counts;
  CHECK(counts.bytes == whole.counts.bytes);
  CHECK(counts.excluded == 1);
  CHECK(counts.hard_links == 1);
  CHECK(scan->known().is_complete);
  CHECK(scan->known().entries == at);
  CHECK(scan->known().bytes == counts.bytes);
}

TEST_CASE("arguments are refused before the thread starts", "[engine][file]") {
  const TempFolder folder;
  make_odd_tree(folder);
  fs::create_directories(folder / "y/d");
  const auto refusal = [&](const Paths& paths) {
    const auto scan = ScanThread::start(paths, {});
    REQUIRE(scan.has_error());
    CHECK(scan.error().code == ExitCode::local_file_error);
    return scan.error().message();
  };
  const std::string f = (folder / "f").string(), d = (folder / "d").string();
  CHECK(refusal({d, (folder / "none").string()}).find("No such file") != std::string::npos);
  CHECK(refusal({d, (folder / "d/a/fifo").string()}).find("fifo") != std::string::npos);
  CHECK(refusal({f, d, f}).find("same name") != std::string::npos);
  CHECK(refusal({d, (folder / "y/d").string()}).find("same name") != std::string::npos);
}

// What a folder holds is not known before it is read, so the names are compared as they come.
TEST_CASE("a name that stands there already ends the list when it comes", "[engine][file]") {
  const TempFolder folder;
  fs::create_directories(folder / "p/same");
  fs::create_directories(folder / "q/same");
  fs::create_directories(folder / "r/q");
  write_file(folder / "p/1", "");
  write_file(folder / "q/2", "");
  write_file(folder / "same", "");
  const std::string p = (folder / "p/").string(), q = (folder / "q/").string(),
                    r = (folder / "r/").string(), same = (folder / "same").string();
  for (const Paths& paths : {Paths{p, q}, Paths{p, same}, Paths{same, p},
                             Paths{r, (folder / "q").string()}, Paths{p, p}}) {
    CAPTURE(paths);
    const auto scan = started(paths, {.entries_max = 1, .age_max = no_age});
    Result<ScanVolume> next = scan->wait_next();
    while (next.has_value()) next = scan->wait_next();
    CHECK(next.error().message().find("same name") != std::string::npos);
  }
  const auto scan = started({p, (folder / "q").string()}, {.entries_max = 1, .age_max = no_age});
  CHECK(entries_of(volumes_of(*scan)).size() == 5);
}

// Goal:   a tree of any size takes the memory of a few volumes. Method: a folder with more names
// than are sorted at once; before each volume is taken the thread has gone as far ahead as it can.
// Bounds: exact. Each name comes once.
TEST_CASE("a scan is never further ahead than its volumes", "[engine][file]") {
  constexpr std::uint64_t files = FolderNames::run_names_max + 3000;
  constexpr VolumeSizes sizes{.entries_max = 1000, .ahead_max = 3, .age_max = no_age};
  const TempFolder folder{in_memory()};
  const int parent = ::open(folder.path().c_str(), O_PATH | O_CLOEXEC);
  for (std::uint64_t i = 0; i < files; ++i)
    ::close(::openat(parent, std::to_string(i).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  ::close(parent);
  const auto scan = started({folder.path().string() + "/"}, sizes);
  std::set<std::string> names;
  for (bool is_last = false; !is_last;) {
    const std::uint64_t ahead =
        std::min<std::uint64_t>(files, names.size() + sizes.entries_max * (sizes.ahead_max + 1));
    wait_until_known(*scan, ahead);
    CHECK(scan->known().entries == ahead);
    ScanVolume volume = next_of(*scan);
    for (ManifestEntry& entry : volume.source.manifest.files) names.insert(std::move(entry.name));
    is_last = volume.is_last;
  }
  CHECK(names.size() == files);
}

TEST_CASE("a scan that waits for room, or has just begun, ends with its owner", "[engine][file]") {
  const TempFolder folder;
  write_files(folder / "d", 20);
  const std::uint64_t seen = GENERATE(0U, 1U, 4U);
  const auto scan =
      started({(folder / "d").string()}, {.entries_max = 2, .ahead_max = 1, .age_max = no_age});
  wait_until_known(*scan, seen);  // 4: one volume waits, one is full
  CHECK(scan->known().entries <= 4);
  CHECK_FALSE(scan->known().is_complete);
}

// Goal:   what vanishes while the scan waits is a problem, below a folder and as an argument.
// Method: the thread has no room for the fifth file of the first folder. Bounds: exact.
TEST_CASE("C4 what vanishes before it is read is a problem, and the rest goes on",
          "[engine][file]") {
  const TempFolder folder;
  write_files(folder / "d", 5);
  write_files(folder / "d/gone", 2);
  write_files(folder / "d/stays", 1);
  write_files(folder / "e", 1);
  const auto scan = started({(folder / "d").string(), (folder / "e").string()},
                            {.entries_max = 2, .ahead_max = 1, .age_max = no_age});
  wait_until_known(*scan, 4);
  fs::remove_all(folder / "d/gone");
  fs::remove_all(folder / "e");
  const std::vector<ScanVolume> volumes = volumes_of(*scan);
  CHECK(entries_of(volumes).size() == 8);  // 5 files, stays/0, stays, d
  std::map<std::string, ScanProblemKind> problems;
  for (const ScanVolume& volume : volumes)
    for (const ScanProblem& problem : volume.problems) problems[problem.path] = problem.kind;
  CHECK(problems == std::map<std::string, ScanProblemKind>{
                        {(folder / "d/gone").string(), ScanProblemKind::vanished},
                        {(folder / "e/").string(), ScanProblemKind::vanished}});
}

TEST_CASE("an error deep in the tree comes after the volumes before it", "[engine][file]") {
  const TempFolder folder;
  write_files(folder / "d", 5);
  fs::create_directories(folder / "d/1x/2/3");
  ScanOptions options{.symlinks = Symlinks::error};
  std::string cause = "symbolic link";
  SECTION("a link") { fs::create_symlink("a", folder / "d/1x/2/3/link"); }
  SECTION("too many") {
    options.limits.entries_max = 5;
    cause = "the limit is 5";
  }
  const auto scan =
      started({(folder / "d").string()}, {.entries_max = 2, .age_max = no_age}, options);
  CHECK(next_of(*scan).source.files.size() == 2);
  CHECK(next_of(*scan).source.files.size() == 2);
  Result<ScanVolume> next = scan->wait_next();
  REQUIRE(next.has_error());
  CHECK(next.error().code == ExitCode::local_file_error);
  CHECK(next.error().message().find(cause) != std::string::npos);
  CHECK_FALSE(scan->known().is_complete);
}

// Goal:   known() only grows, is never behind what was taken, and is complete with the last.
// Method: another thread reads it all the time. Bounds: exact.
TEST_CASE("what is known of a tree only grows", "[engine][file]") {
  const TempFolder folder;
  write_files(folder / "d/e", 300);
  write_files(folder / "d", 300);
  const auto scan =
      started({(folder / "d").string()}, {.entries_max = 7, .ahead_max = 2, .age_max = no_age});
  std::atomic<bool> has_shrunk = false;
  std::jthread watcher{[&](const std::stop_token& stop) {
    for (ScanKnown before; !stop.stop_requested();) {
      const ScanKnown now = scan->known();
      if (now.entries < before.entries || now.bytes < before.bytes ||
          (before.is_complete && !now.is_complete) || now.bytes > now.entries)
        has_shrunk = true;
      before = now;
    }
  }};
  std::uint64_t entries = 0;
  for (bool is_last = false; !is_last;) {
    const ScanVolume volume = next_of(*scan);
    entries += volume.source.files.size();
    CHECK(scan->known().entries >= entries);
    is_last = volume.is_last;
  }
  CHECK(scan->known().is_complete);
  CHECK(scan->known().entries == 602);
  CHECK(scan->known().files == 600);
  CHECK(scan->known().bytes == 600);
  watcher.request_stop();
  watcher.join();
  CHECK_FALSE(has_shrunk);
}

TEST_CASE("a volume that is awaited is given before it is full", "[engine][file]") {
  const TempFolder folder;
  write_files(folder / "d", 50);
  const auto scan = started({(folder / "d").string()}, {.age_max = 0ns});
  const ScanVolume first = next_of(*scan);
  CHECK(first.source.files.size() == 1);
  CHECK_FALSE(first.is_last);
  std::size_t entries = 1;
  for (bool is_last = false; !is_last;) {
    const ScanVolume volume = next_of(*scan);
    entries += volume.source.files.size();
    is_last = volume.is_last;
  }
  CHECK(entries == 51);
}

TEST_CASE("who cannot wait is told when there is a volume", "[engine][file]") {
  const TempFolder folder;
  write_files(folder / "d", 20);
  std::counting_semaphore<> ready{0};
  auto scan = ScanThread::start(Paths{(folder / "d").string()}, {},
                                {.entries_max = 4, .ahead_max = 2, .age_max = no_age},
                                [&] { ready.release(); });
  REQUIRE(scan.has_value());
  std::size_t entries = 0;
  for (bool is_last = false; !is_last;) {
    ready.acquire();
    std::optional<Result<ScanVolume>> next = scan.value()->try_next();
    REQUIRE(next.has_value());
    REQUIRE(next->has_value());
    entries += next->value().source.files.size();
    is_last = next->value().is_last;
  }
  CHECK(entries == 21);
  CHECK_FALSE(ready.try_acquire());
}

TEST_CASE("C4 problems without end come in volumes as well", "[engine][file]") {
  const TempFolder folder;
  write_files(folder / "d", 1);
  for (int i = 0; i < 10; ++i)
    REQUIRE(::mkfifo((folder / ("d/fifo" + std::to_string(i))).c_str(), 0600) == 0);
  const auto scan = started({(folder / "d").string()}, {.entries_max = 3, .age_max = no_age});
  std::size_t problems = 0;
  const std::vector<ScanVolume> volumes = volumes_of(*scan);
  for (const ScanVolume& volume : volumes) {
    CHECK(volume.problems.size() <= 3);
    problems += volume.problems.size();
  }
  CHECK(problems == 10);
  CHECK(entries_of(volumes).size() == 2);
}

TEST_CASE("descriptors are kept in the first volume alone", "[engine][file]") {
  const TempFolder folder;
  write_files(folder / "d", 2 * open_files_kept);
  write_files(folder / "n", 40);
  Paths paths{(folder / "d").string()};
  for (std::size_t i = 0; i < 40; ++i) paths.push_back((folder / "n" / std::to_string(i)).string());
  if (GENERATE(false, true)) std::ranges::rotate(paths, paths.begin() + 1);  // the files first
  const std::size_t entries_max = GENERATE(100U, 4096U);
  const auto scan = started(paths, {.entries_max = entries_max, .age_max = no_age});
  std::vector<std::size_t> open_counts;
  for (const ScanVolume& volume : volumes_of(*scan))
    open_counts.push_back(static_cast<std::size_t>(std::ranges::count_if(
        volume.source.files, [](const SourceFile& file) { return file.fd.is_open(); })));
  CHECK(open_counts.front() == std::min(entries_max, open_files_kept));
  CHECK(std::accumulate(open_counts.begin() + 1, open_counts.end(), std::size_t{0}) == 0);
}

TEST_CASE("hard links are counted with bounded memory, and the count says so", "[engine][file]") {
  HardLinks links;
  struct stat status {};
  const auto count = [&](std::size_t inode, nlink_t names) {
    status.st_ino = inode;
    status.st_nlink = names;
    links.count(status);
  };
  count(7, 1);
  count(7, 1);
  CHECK(links.links_total() == 0);
  for (std::size_t i = 0; i < HardLinks::inodes_max; ++i) count(i, 2);
  for (std::size_t i = 0; i < HardLinks::inodes_max; ++i) count(i, 2);
  CHECK(links.links_total() == HardLinks::inodes_max);
  CHECK_FALSE(links.is_lower_bound());
  for (int twice = 0; twice < 2; ++twice) count(HardLinks::inodes_max, 2);
  CHECK(links.links_total() == HardLinks::inodes_max);
  CHECK(links.is_lower_bound());
}
