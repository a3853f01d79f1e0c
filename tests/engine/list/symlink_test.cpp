// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Symbolic links that are sent as links.
#include "engine/list/symlink_rule.hpp"
#include "tests/engine/sink/tree_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

ScanVolume scan_links(const fs::path& folder) {
  const std::string path = folder.string() + "/";
  Result<ScanVolume> found = scan({&path, 1}, {.symlinks = Symlinks::copy});
  if (found.has_error()) FAIL(found.error().message());
  return std::move(found).value();
}

/// Many links among small files, so that some lie in two blocks of the pack.
void add_links(const fs::path& folder, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::string below = "d" + std::to_string(i % 5);
    std::string target = "..";
    for (std::size_t part = 0; part <= i * 7 % 1900; ++part) target += "/x";
    const fs::path link = folder / below / ("l" + std::to_string(i));
    fs::create_symlink(target, link);
    const timespec times[2] = {{1, 0}, {1'000'000'000, static_cast<long>(i)}};
    ::utimensat(AT_FDCWD, link.c_str(), times, AT_SYMLINK_NOFOLLOW);
  }
}

std::int64_t mtime_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// One link "d/l" to "../a", beside a file.
struct LinkFolder {
  TempFolder folder;
  LinkFolder() {
    fs::create_directory(folder / "d");
    write_file(folder / "a", "content");
    fs::create_symlink("../a", folder / "d/l");
  }
  [[nodiscard]] SourceFiles list() const { return scan_links(folder.path()).source; }
};

/// The same name with the same length at the other end.
void put_link(const TempFolder& to, const std::string& target) {
  fs::create_directory(to / "d");
  fs::create_symlink(target, to / "d/l");
}

}  // namespace

// Goal:   a chain of links leads nowhere out of the folder. Method: every kind of target; the rules
//         are those of target_fault(). Bounds: exact.
TEST_CASE("P2 a target that may lead out of its folder has a fault", "[engine][file]") {
  for (const auto& [name, target] :
       std::initializer_list<std::pair<const char*, std::string>>{{"l", "a"},
                                                                  {"d/l", "../a"},
                                                                  {"d/e/l", "../../a"},
                                                                  {"d/l", ".."},
                                                                  {"d/l", "./../a"},
                                                                  {"l", "a/b//c/."},
                                                                  {"l", "..."},
                                                                  {"l", "a/..b"},
                                                                  {"l", std::string(4095, 'x')}})
    CHECK(target_fault(name, target).empty());
  for (const auto& [name, target] :
       std::initializer_list<std::pair<const char*, std::string>>{{"l", ""},
                                                                  {"l", "/"},
                                                                  {"l", "/a"},
                                                                  {"l", ".."},
                                                                  {"l", "../a"},
                                                                  {"d/l", "../../a"},
                                                                  {"d/l", ".././../a"},
                                                                  {"d/l", "e/../a"},
                                                                  {"l", "a/.."},
                                                                  {"l", std::string(4096, 'x')},
                                                                  {"l", std::string{"a\0b", 3}}})
    CHECK_FALSE(target_fault(name, target).empty());
}

TEST_CASE("links whose target is inside are sent as links, and others are named",
          "[engine][file]") {
  const LinkFolder from;
  fs::create_symlink("none", from.folder / "dangling");
  fs::create_symlink("..", from.folder / "up");
  fs::create_symlink("/etc/passwd", from.folder / "absolute");
  const ScanVolume found = scan_links(from.folder.path());
  CHECK(found.counts.files == 3);
  CHECK(found.counts.bytes == 7 + 4 + 4);
  REQUIRE(found.problems.size() == 2);
  for (const ScanProblem& problem : found.problems)
    CHECK(problem.kind == ScanProblemKind::symlink_refused);
  for (const ManifestEntry& entry : found.source.manifest.files)
    CHECK(entry.is_symlink() == (entry.name == "d/l" || entry.name == "dangling"));
  // What is named itself and lies in a folder of another name: inside is below the argument.
  const std::string below = (from.folder / "d").string();
  const Result<ScanVolume> of_folder = scan({&below, 1}, {.symlinks = Symlinks::copy});
  REQUIRE(of_folder.has_value());
  CHECK(of_folder.value().problems.size() == 1);
}

TEST_CASE("P1 a link with an impossible size, or with something below it, is refused",
          "[engine][file]") {
  Manifest manifest{{{.name = "l", .size = 3, .kind = EntryKind::symlink}}};
  CHECK(validate(manifest).has_value());
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{4096}, std::uint64_t{1} << 40}) {
    manifest.files[0].size = size;
    CHECK(validate(manifest).has_error());
  }
  manifest.files[0].size = 3;
  manifest.files.push_back({.name = "l/a", .size = 1});
  CHECK(validate(manifest).has_error());
  manifest.files[1] = {.name = "l", .mode = 0755, .kind = EntryKind::folder};
  CHECK(validate(manifest).has_error());
}

// Goal:   links arrive as they are, with their times, also those whose record lies in two blocks.
// Method: 300 targets of up to 3800 bytes, blocks in order and not, each durability. Bounds: exact.
TEST_CASE("links arrive whole in any order of blocks", "[engine][file]") {
  const auto durability = GENERATE(Durability::batch, Durability::file, Durability::none);
  const std::uint64_t seed = GENERATE(0U, 3U);
  const Tree tree{seed + 1};
  add_links(tree.folder.path(), 300);
  const TempFolder to{in_memory()};
  const ScanVolume found = scan_links(tree.folder.path());
  REQUIRE(found.problems.empty());
  const Manifest manifest = found.source.manifest;
  const Outcome outcome = send_files(
      scan_links(tree.folder.path()).source, to.path(), OnExist::ask,
      [&](Wire& wire) { wire.reorder_seed = seed; },
      [&](SinkSettings& settings) { settings.durability = durability; });
  REQUIRE_FALSE(outcome.sink_failure.has_value());
  std::size_t links = 0;
  for (const ManifestEntry& entry : manifest.files) {
    if (!entry.is_symlink()) continue;
    ++links;
    INFO(entry.name);
    CHECK(fs::read_symlink(to / entry.name) == fs::read_symlink(tree.folder / entry.name));
    CHECK(mtime_of(to / entry.name) == entry.mtime_ns);
  }
  CHECK(links == 300);
  CHECK(names_in(to.path()) == names_in(tree.folder.path()));
  // Again: all of it is there.
  const Outcome again =
      send_files(scan_links(tree.folder.path()).source, to.path(), OnExist::resume, {});
  CHECK_FALSE(again.sink_failure.has_value());
  CHECK(again.packed_there >= links);
}

// Goal:   a link of the peer's leads nowhere but below what was sent, whatever the sender says.
// Method: a source that sends links which an honest one leaves out, into a folder where things are.
// Bounds: exact; all else arrives.
TEST_CASE("P2 a link that leads out is refused, and all else arrives", "[engine][file]") {
  const auto [target, fault] = GENERATE(table<const char*, SymlinkFault>({
      {"/etc", SymlinkFault::leads_out},
      {"../../a", SymlinkFault::leads_out},
      {"x/../../mine", SymlinkFault::leads_out},
      {"../mine/secret", SymlinkFault::leads_out},
      {"..", SymlinkFault::leads_out},
      {"../.ssh/keys", SymlinkFault::hidden},
      {".git/config", SymlinkFault::hidden},
      {"old/passwd", SymlinkFault::other_link},
      {"old", SymlinkFault::other_link},
      {"within/x", SymlinkFault::other_link},
      {"../a", SymlinkFault::none},
      {"../e/none", SymlinkFault::none},
      {"sub", SymlinkFault::none},
      {"sub/../..x", SymlinkFault::leads_out},
  }));
  CAPTURE(target);
  const LinkFolder from;
  fs::create_directory(from.folder / "e");
  SourceFiles files = from.list();
  const auto at = std::ranges::find(files.manifest.files, EntryKind::symlink, &ManifestEntry::kind);
  const auto index = static_cast<std::size_t>(at - files.manifest.files.begin());
  fs::remove(from.folder / "d/l");
  fs::create_symlink(target, from.folder / "d/l");
  struct stat status {};
  REQUIRE(::lstat((from.folder / "d/l").c_str(), &status) == 0);
  files.files[index].fence = fence_of(status, true);
  files.manifest.files[index].size = std::strlen(target);
  const TempFolder to;
  fs::create_directories(to / "d/sub");
  fs::create_directory(to / "mine");
  write_file(to / "mine/secret", "mine");
  fs::create_symlink("/etc", to / "d/old");
  fs::create_symlink("sub", to / "d/within");
  const Outcome outcome = send_files(std::move(files), to.path(), OnExist::ask, {});
  REQUIRE_FALSE(outcome.sink_failure.has_value());
  CHECK(fs::is_symlink(to / "d/l") == (fault == SymlinkFault::none));
  CHECK(read_file(to / "a") == "content");
  REQUIRE(outcome.packed_refused.size() == (fault == SymlinkFault::none ? 0U : 1U));
  if (fault != SymlinkFault::none)
    CHECK(outcome.packed_refused[0].name_fault == static_cast<int>(fault));
}

// Goal:   links of one session that lead out together are not all made, in any order. Method: the
//         rule by itself, over a folder with a link of the user's; what passes is made. Bounds:
//         exact.
TEST_CASE("P2 a chain of links leads nowhere out, in whatever order they come", "[engine][file]") {
  const TempFolder to;
  fs::create_directories(to / "p/own/deep");
  fs::create_symlink("/etc", to / "p/own/out");
  const Fd root{::open(to.path().c_str(), O_RDONLY | O_DIRECTORY)};
  const std::vector<std::pair<std::string, std::string>> links = GENERATE(
      std::vector<std::pair<std::string, std::string>>{{"p/a", "b/out/passwd"}, {"p/b", "own"}},
      std::vector<std::pair<std::string, std::string>>{{"p/a", "b/c/out"}, {"p/b", "own"}},
      std::vector<std::pair<std::string, std::string>>{
          {"p/a", "b/c/x"}, {"p/b", "d"}, {"p/d/c", "../own/out"}},
      std::vector<std::pair<std::string, std::string>>{
          {"p/a", "b/out"}, {"p/b", "c"}, {"p/c", "d"}, {"p/d", "own"}});
  SymlinkRule rule{false};
  Manifest manifest;
  for (const auto& [name, target] : links)
    manifest.files.push_back({name, target.size(), 0777, 0, EntryKind::symlink});
  rule.offer(manifest);
  std::vector<std::size_t> order(links.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  do {
    for (const auto& [name, target] : links) fs::remove(to / name);
    fs::remove(to / "p/d");
    SymlinkRule fresh{false};
    fresh.offer(manifest);
    for (const std::size_t i : order) {
      const auto& [name, target] = links[i];
      REQUIRE(fresh.fault_of(name, target) == SymlinkFault::none);
      if (fresh.check(root.get(), name, target) != SymlinkFault::none) continue;
      fs::create_directories((to / name).parent_path());
      fs::create_symlink(target, to / name);
    }
    // Whatever can be reached through them is below the folder.
    for (const auto& [name, target] : links) {
      std::error_code none;
      const fs::path real = fs::weakly_canonical(to / name, none);
      INFO(name << " -> " << target << " is " << real);
      CHECK(real.string().starts_with(fs::canonical(to.path()).string() + "/p/"));
    }
  } while (std::ranges::next_permutation(order).found);
}

TEST_CASE("links that lead through links of their own session are made", "[engine][file]") {
  const TempFolder to;
  fs::create_directories(to / "p/lib");
  const Fd root{::open(to.path().c_str(), O_RDONLY | O_DIRECTORY)};
  SymlinkRule rule{false};
  rule.offer({{{"p/lib64", 3, 0777, 0, EntryKind::symlink},
               {"p/x", 3, 0777, 0, EntryKind::symlink},
               {"q", 0, 0755, 0, EntryKind::folder}}});
  CHECK(rule.check(root.get(), "p/x", "lib64/none/y") == SymlinkFault::none);
  CHECK(rule.check(root.get(), "p/lib64", "lib") == SymlinkFault::none);
  fs::create_symlink("lib", to / "p/lib64");
  CHECK(rule.check(root.get(), "p/y", "lib64/z") == SymlinkFault::none);
  CHECK(rule.check(root.get(), "p/z", "../q/z") == SymlinkFault::none);
  fs::create_symlink("lib", to / "p/mine");
  CHECK(rule.check(root.get(), "p/v", "mine/z") == SymlinkFault::other_link);
  rule.set_folding();
  CHECK(rule.check(root.get(), "p/w", "lib/z") == SymlinkFault::none);
  CHECK(rule.check(root.get(), "p/w", "none/z") == SymlinkFault::other_link);
}

TEST_CASE("C3 a link that changed after it was listed ends the source", "[engine][file]") {
  const LinkFolder from;
  SourceFiles files = from.list();
  fs::remove(from.folder / "d/l");
  const bool is_file = GENERATE(true, false);
  if (is_file)
    write_file(from.folder / "d/l", "four");
  else
    fs::create_symlink("../b", from.folder / "d/l");
  const TempFolder to;
  const Outcome outcome = send_files(std::move(files), to.path(), OnExist::ask, {});
  REQUIRE(outcome.source_failure.has_value());
  CHECK(outcome.source_failure->failure == FileFailure::source_changed);
}

TEST_CASE("C3 a link that changed is looked at as one that is new", "[engine][file]") {
  const LinkFolder from;
  const auto [target, problems] =
      GENERATE(table<const char*, std::size_t>({{"../other", 0}, {"/etc/passwd", 1}}));
  SourceFiles files = from.list();
  fs::remove(from.folder / "d/l");
  fs::create_symlink(target, from.folder / "d/l");
  std::vector<ScanProblem> found;
  const auto again = look_again(std::move(files), found);
  REQUIRE(again.has_value());
  REQUIRE(found.size() == problems);
  if (problems > 0) CHECK(found[0].kind == ScanProblemKind::symlink_refused);
  CHECK(std::ranges::count(again.value().manifest.files, EntryKind::symlink,
                           &ManifestEntry::kind) == (problems > 0 ? 0 : 1));
}

// Goal:   what has a link's name is dealt with as the policy says, and another link's target is
//         never touched. Method: the same link, another one of the same length, one of another
//         length, a file. Bounds: exact.
TEST_CASE("P5 a link that is there is compared by its target", "[engine][file]") {
  const LinkFolder from;
  const TempFolder to;
  write_file(to / "b", "mine");
  SECTION("the same link is there") {
    put_link(to, "../a");
    const Outcome outcome = send_files(from.list(), to.path(), OnExist::resume, {});
    CHECK_FALSE(outcome.sink_failure.has_value());
    CHECK(outcome.packed_there >= 1);
  }
  SECTION("another one is there, and stays") {
    put_link(to, "../b");
    const OnExist on_exist = GENERATE(OnExist::resume, OnExist::skip);
    const Outcome outcome = send_files(from.list(), to.path(), on_exist, {});
    CHECK(outcome.sink_failure.has_value() == (on_exist == OnExist::resume));
    CHECK(outcome.packed_kept == (on_exist == OnExist::skip ? 1U : 0U));
    CHECK(fs::read_symlink(to / "d/l") == "../b");
  }
  SECTION("another one is there, and gives way") {
    put_link(to, GENERATE("../b", "../b/c"));
    const Outcome outcome = send_files(from.list(), to.path(), OnExist::overwrite, {});
    CHECK_FALSE(outcome.sink_failure.has_value());
    CHECK(fs::read_symlink(to / "d/l") == "../a");
  }
  SECTION("both stay") {
    put_link(to, "../b");
    const Outcome outcome = send_files(from.list(), to.path(), OnExist::rename, {});
    CHECK_FALSE(outcome.sink_failure.has_value());
    CHECK(fs::read_symlink(to / "d/l") == "../b");
    CHECK(fs::read_symlink(to / "d/l (2)") == "../a");
  }
  CHECK(read_file(to / "b") == "mine");
}

TEST_CASE("P5 a file and a link never take each other's place", "[engine][file]") {
  const LinkFolder from;
  const TempFolder to;
  fs::create_directory(to / "d");
  write_file(to / "d/l", "file");
  const SourceFiles files = from.list();
  const auto sink =
      make_sink(files.manifest, sink_settings(to.path(), files.manifest, OnExist::overwrite));
  for (std::size_t i = 0; i < files.manifest.files.size(); ++i)
    CHECK(sink->faults()[i] == (files.manifest.files[i].name == "d/l" ? EEXIST : 0));
  CHECK(read_file(to / "d/l") == "file");
}

// Goal:   what comes up while a link arrives stays, though names are to be overwritten. Method:
//         a file has the link's name, or a link that of the file beside it, once the list was
//         looked at. Bounds: exact.
TEST_CASE("P5 a name of another kind that comes up meanwhile stays", "[engine][file]") {
  const LinkFolder from;
  const TempFolder to;
  const std::string name = GENERATE("d/l", "a");
  const Outcome outcome = send_files(from.list(), to.path(), OnExist::overwrite, [&](Wire&) {
    fs::create_directories(to / "d");
    if (name == "a")
      fs::create_symlink("mine", to / name);
    else
      write_file(to / name, "mine");
  });
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK(std::ranges::count(outcome.packed_refused, EEXIST, &RecordsFinished::name_fault) == 1);
  CHECK((name == "a" ? fs::read_symlink(to / name).string() : read_file(to / name)) == "mine");
}
