// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the folders of a command line come to.
#include "engine/list/tree_scan.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <map>

#include "engine/list/source_opener.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

ScanVolume scanned(const std::vector<std::string>& paths, const ScanOptions& options = {}) {
  Result<ScanVolume> found = scan(paths, options);
  if (found.has_error()) FAIL(found.error().message());
  return std::move(found).value();
}
std::string refusal_of(const std::vector<std::string>& paths, const ScanOptions& options = {}) {
  const Result<ScanVolume> found = scan(paths, options);
  REQUIRE(found.has_error());
  CHECK(found.error().code == ExitCode::local_file_error);
  return found.error().message();
}

/// Names of a scan, sorted; a folder's with a slash.
std::vector<std::string> names_of(const ScanVolume& found) {
  std::vector<std::string> names;
  for (const ManifestEntry& entry : found.source.manifest.files)
    names.push_back(entry.name + (entry.is_folder() ? "/" : ""));
  std::ranges::sort(names);
  return names;
}
std::map<std::string, std::string> problems_of(const ScanVolume& found, const TempFolder& folder) {
  std::map<std::string, std::string> kinds;
  for (const ScanProblem& problem : found.problems)
    kinds[fs::path{problem.path}.lexically_relative(folder.path()).string()] =
        name_of(problem.kind);
  return kinds;
}

using Names = std::vector<std::string>;

/// d/{a,.h,e/,s/{b,t/c}}
struct SmallTree {
  TempFolder folder;
  SmallTree() {
    fs::create_directories(folder / "d/s/t");
    fs::create_directories(folder / "d/e");
    write_file(folder / "d/a", "aaa");
    write_file(folder / "d/.h", "h");
    write_file(folder / "d/s/b", "bb");
    write_file(folder / "d/s/t/c", "c");
  }
  [[nodiscard]] std::string at(const std::string& name) const { return (folder / name).string(); }
};

}  // namespace

TEST_CASE("a folder arrives as a folder, with a slash it gives what it holds", "[engine][file]") {
  const SmallTree tree;
  const Names whole{"d/", "d/.h", "d/a", "d/e/", "d/s/", "d/s/b", "d/s/t/", "d/s/t/c"};
  const Names content{".h", "a", "e/", "s/", "s/b", "s/t/", "s/t/c"};
  CHECK(names_of(scanned({tree.at("d")})) == whole);
  CHECK(names_of(scanned({tree.at("d/")})) == content);
  CHECK(names_of(scanned({tree.at("d/.")})) == whole);
  CHECK(names_of(scanned({tree.at("d/s/..")})) == whole);
  CHECK(names_of(scanned({tree.at("d/./")})) == content);
  CHECK(names_of(scanned({tree.at("d/s"), tree.at("d/a")})) ==
        Names{"a", "s/", "s/b", "s/t/", "s/t/c"});

  const ScanVolume found = scanned({tree.at("d")});
  CHECK(found.counts.files == 4);
  CHECK(found.counts.folders == 4);
  CHECK(total_bytes(found.source.manifest) == 7);
  CHECK(found.problems.empty());
  std::vector<std::string> met;
  for (std::size_t i = 0; i < found.source.files.size(); ++i) {
    const ManifestEntry& entry = found.source.manifest.files[i];
    CHECK(found.source.path_of(i) == tree.at(entry.name) + (entry.name == "d" ? "/" : ""));
    if (const std::size_t slash = entry.name.rfind('/'); slash != std::string::npos)
      CHECK(std::ranges::count(met, entry.name.substr(0, slash)) == 0);  // its folder comes later
    met.push_back(entry.name);
    struct stat status {};
    REQUIRE(::stat(found.source.path_of(i).c_str(), &status) == 0);
    CHECK(entry.mode == (status.st_mode & 0777));
    CHECK(entry.mtime_ns % 1'000'000'000 == status.st_mtim.tv_nsec);
    CHECK(entry.is_folder() == S_ISDIR(status.st_mode));
    CHECK(found.source.files[i].fd.is_open() == !entry.is_folder());
  }
}

// Goal:   a folder follows what it holds, its files come first and by inode. Method: the list of a
// tree whose names, times of making and inodes are in different orders. Bounds: exact.
TEST_CASE("files come by inode, then subfolders with what they hold, then the folder",
          "[engine][file]") {
  const TempFolder folder;
  for (const char* const below : {"d/z", "d/a/x", "d/m"}) fs::create_directories(folder / below);
  for (const char* const name : {"d/9", "d/5", "d/a/7", "d/1", "d/a/x/2", "d/z/3", "d/a/4"})
    write_file(folder / name, name);
  const auto inode_of = [&](const std::string& name) {
    struct stat status {};
    REQUIRE(::stat((folder / name).c_str(), &status) == 0);
    return status.st_ino;
  };
  const auto by_inode = [&](Names names) {
    std::ranges::sort(names, {}, inode_of);
    return names;
  };
  Names wanted;
  const std::function<void(const std::string&, const std::map<std::string, Names>&)> expect =
      [&](const std::string& name, const std::map<std::string, Names>& files) {
        std::ranges::copy(by_inode(files.at(name)), std::back_inserter(wanted));
        Names below;
        for (const auto& [other, ignored] : files)
          if (other.starts_with(name + "/") &&
              other.find('/', name.size() + 1) == std::string::npos)
            below.push_back(other);
        for (const std::string& one : by_inode(below)) expect(one, files);
        wanted.push_back(name);
      };
  expect("d", {{"d", {"d/1", "d/5", "d/9"}},
               {"d/a", {"d/a/4", "d/a/7"}},
               {"d/a/x", {"d/a/x/2"}},
               {"d/m", {}},
               {"d/z", {"d/z/3"}}});
  Names found;
  const ScanVolume list = scanned({(folder / "d").string()});
  for (const ManifestEntry& entry : list.source.manifest.files) found.push_back(entry.name);
  CHECK(found == wanted);
}

TEST_CASE("names that meet are refused with both paths", "[engine][file]") {
  const SmallTree tree;
  fs::create_directories(tree.folder / "x");
  write_file(tree.folder / "x/a", "other");
  CHECK(refusal_of({tree.at("d/"), tree.at("x/")}).find("same name") != std::string::npos);
  CHECK(refusal_of({tree.at("d/a"), tree.at("x/a")}).find("same name") != std::string::npos);
  CHECK(refusal_of({tree.at("d"), tree.at("d")}).find("same name") != std::string::npos);
  CHECK(names_of(scanned({tree.at("x"), tree.at("d/a")})) == Names{"a", "x/", "x/a"});
}

TEST_CASE("C4 below a folder what cannot be sent is a problem, and the rest goes on",
          "[engine][file]") {
  const SmallTree tree;
  REQUIRE(::mkfifo(tree.at("d/fifo").c_str(), 0600) == 0);
  const int server = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, tree.at("d/s/sock").c_str(), sizeof address.sun_path - 1);
  REQUIRE(::bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(server);
  write_file(tree.folder / "d/.x.onehop-journal", "state");
  const ScanVolume found = scanned({tree.at("d")});
  CHECK(found.counts.files == 4);
  CHECK(problems_of(found, tree.folder) ==
        std::map<std::string, std::string>{{"d/fifo", "special"},
                                           {"d/s/sock", "special"},
                                           {"d/.x.onehop-journal", "name_refused"}});
  CHECK(std::ranges::all_of(found.problems, is_failure));
  // Named itself it is an error.
  CHECK(refusal_of({tree.at("d/fifo")}).find("fifo") != std::string::npos);
  CHECK(refusal_of({tree.at("none")}).find("No such file") != std::string::npos);
}

TEST_CASE("C4 what may not be read is a problem, opened at the scan or not", "[engine][file]") {
  if (::geteuid() == 0) {
    WARN("not tested here: root may read everything");
    return;
  }
  const SmallTree tree;
  for (std::size_t i = 0; i < open_files_kept; ++i)
    write_file(tree.folder / "d" / std::to_string(i), "");
  fs::permissions(tree.folder / "d/a", fs::perms::none);
  fs::permissions(tree.folder / "d/s/b", fs::perms::none);
  fs::permissions(tree.folder / "d/e", fs::perms::none);
  const ScanVolume found = scanned({tree.at("d")});
  fs::permissions(tree.folder / "d/e", fs::perms::owner_all);
  CHECK(problems_of(found, tree.folder) ==
        std::map<std::string, std::string>{
            {"d/a", "unreadable"}, {"d/s/b", "unreadable"}, {"d/e", "unreadable"}});
}

TEST_CASE("C4 a link is skipped, refused, or sent as the file below the same folder",
          "[engine][file]") {
  const SmallTree tree;
  write_file(tree.folder / "outside", "secret");
  fs::create_symlink("s/b", tree.folder / "d/inside");
  fs::create_symlink("../a", tree.folder / "d/s/up");
  fs::create_symlink("../outside", tree.folder / "d/out");
  fs::create_symlink(tree.at("d/a"), tree.folder / "d/absolute");
  fs::create_symlink("s", tree.folder / "d/folder");
  fs::create_symlink("loop", tree.folder / "d/loop");
  fs::create_symlink("none", tree.folder / "d/dangling");
  fs::create_symlink(".", tree.folder / "d/s/self");

  const ScanVolume skipped = scanned({tree.at("d")});
  CHECK(skipped.counts.files == 4);
  CHECK(skipped.problems.size() == 8);
  CHECK(std::ranges::none_of(skipped.problems, is_failure));

  CHECK(refusal_of({tree.at("d")}, {.symlinks = Symlinks::error}).find("symbolic link") !=
        std::string::npos);

  const ScanVolume followed = scanned({tree.at("d")}, {.symlinks = Symlinks::follow_inside});
  CHECK(followed.counts.files == 6);
  CHECK(problems_of(followed, tree.folder) ==
        std::map<std::string, std::string>{{"d/out", "symlink_refused"},
                                           {"d/absolute", "symlink_refused"},
                                           {"d/folder", "symlink_refused"},
                                           {"d/loop", "symlink_refused"},
                                           {"d/dangling", "symlink_refused"},
                                           {"d/s/self", "symlink_refused"}});
  for (std::size_t i = 0; i < followed.source.files.size(); ++i) {
    if (!followed.source.places[i].is_link) continue;
    struct stat status {};
    const auto again = SourceOpener{}.look_at_file(followed.source, i, status);
    REQUIRE(again.has_value());
    CHECK(is_within(followed.source.files[i].fence, status));
  }
  // A link that is named itself is refused, and with a slash it is its folder.
  CHECK(refusal_of({tree.at("d/folder")}).find("symbolic link") != std::string::npos);
  CHECK(names_of(scanned({tree.at("d/folder/")})) == Names{"b", "t/", "t/c"});
}

TEST_CASE("a link that is turned outwards after the scan is not followed", "[engine][file]") {
  const SmallTree tree;
  write_file(tree.folder / "outside", "secret");
  fs::create_symlink("a", tree.folder / "d/link");
  const ScanVolume found = scanned({tree.at("d")}, {.symlinks = Symlinks::follow_inside});
  fs::remove(tree.folder / "d/link");
  fs::create_symlink("../outside", tree.folder / "d/link");
  for (std::size_t i = 0; i < found.source.files.size(); ++i) {
    struct stat status {};
    if (found.source.places[i].is_link)
      CHECK(SourceOpener{}.look_at_file(found.source, i, status).has_error());
  }
}

TEST_CASE("a rule leaves out a name and all below it, and not what is named itself",
          "[engine][file]") {
  const SmallTree tree;
  ScanOptions options{.lists_excluded = true};
  options.rules.add("/s/");
  options.rules.add(".*");
  options.rules.add("a");
  options.rules.add("!a");
  const ScanVolume found = scanned({tree.at("d"), tree.at("d/.h")}, options);
  CHECK(names_of(found) == Names{".h", "d/", "d/a", "d/e/"});
  REQUIRE(found.counts.excluded == 2);
  for (const Excluded& one : found.excluded)
    CHECK(one.rule == (one.path.ends_with(".h") ? ".*" : "/s/"));
}

TEST_CASE("files with several names are sent as files, and counted", "[engine][file]") {
  const SmallTree tree;
  fs::create_hard_link(tree.folder / "d/a", tree.folder / "d/s/again");
  fs::create_hard_link(tree.folder / "d/a", tree.folder / "d/more");
  fs::create_hard_link(tree.folder / "d/s/b", tree.folder / "outside");
  const ScanVolume found = scanned({tree.at("d")});
  CHECK(found.counts.files == 6);
  CHECK(found.counts.hard_links == 2);
}

TEST_CASE("Z1 a tree beyond the limits of a list is refused, not cut", "[engine][file]") {
  const SmallTree tree;
  CHECK(refusal_of({tree.at("d")}, {.limits = {.entries_max = 7}}).find("the limit is 7") !=
        std::string::npos);
  CHECK(scanned({tree.at("d")}, {.limits = {.entries_max = 8}}).counts.files == 4);
  CHECK(refusal_of({tree.at("d/e/")}).find("empty") != std::string::npos);
}

// Goal:   a name that no receiver takes costs itself and what is below it, not the tree.
// Method: limits that the tree's own names exceed, as no file system here has a name of more than
//         255 bytes (exFAT and NTFS do). Bounds: exact.
TEST_CASE("C4 a name that is too long or too deep is a problem, and the rest goes on",
          "[engine][file]") {
  using Problems = std::map<std::string, std::string>;
  const SmallTree tree;
  write_file(tree.folder / "d/longer", "");
  const auto problems = [&](const ManifestLimits& limits, std::size_t files) {
    const ScanVolume found = scanned({tree.at("d")}, {.limits = limits});
    CHECK(found.counts.files == files);
    return problems_of(found, tree.folder);
  };
  CHECK(problems({.component_bytes_max = 5}, 4) == Problems{{"d/longer", "name_refused"}});
  CHECK(problems({.path_bytes_max = 7}, 4) == Problems{{"d/longer", "name_refused"}});
  CHECK(problems({.depth_max = 3}, 4) == Problems{{"d/s/t/c", "name_refused"}});
  CHECK(problems({.depth_max = 2}, 3) ==
        Problems{{"d/s/b", "name_refused"}, {"d/s/t", "name_refused"}});
  CHECK(problems({.depth_max = 4}, 5).empty());
  // Named itself it is an error, before the tree is walked.
  fs::rename(tree.folder / "d/s", tree.folder / "d/.onehop-stage");
  CHECK(refusal_of({tree.at("d"), tree.at("d/.onehop-stage")}).find("reserved") !=
        std::string::npos);
}

TEST_CASE("C4 a file that has the name of another's temporary is a problem", "[engine][file]") {
  const std::string longest(255, 'n'), hashed = temporary_name(longest, part_suffix);
  const SmallTree tree;
  for (const std::string& name :
       {std::string{"d/.a.part"}, std::string{"d/.b.part"}, "d/" + longest, "d/" + hashed})
    write_file(tree.folder / name, "four");
  const ScanVolume found = scanned({tree.at("d")});
  CHECK(problems_of(found, tree.folder) ==
        std::map<std::string, std::string>{{"d/.a.part", "name_refused"},
                                           {"d/" + hashed, "name_refused"}});
  CHECK(found.problems[0].cause.find("temporary name of 'd/") != std::string::npos);
  CHECK(found.source.files.size() == 4 + 4 + 2);  // .b.part has no b beside it
  CHECK(found.counts.files == 6);
  CHECK(found.counts.bytes == total_bytes(found.source.manifest));
  // Named itself it is an error.
  CHECK(refusal_of({tree.at("d/a"), tree.at("d/.a.part")}).find("temporary") != std::string::npos);
}

// Goal:   the same where they come together first when what is left is offered again.
TEST_CASE("C4 a temporary's name from another volume is a problem when both are looked at again",
          "[engine][file]") {
  const SmallTree tree;
  ScanVolume found = scanned({tree.at("d")});
  write_file(tree.folder / "d/.a.part", "four");
  SourceFiles& source = found.source;
  source.manifest.files.push_back({.name = "d/.a.part", .size = 4, .mode = 0644});
  source.places.push_back(source.places[0]);
  std::vector<ScanProblem> problems;
  const Result<SourceFiles> again = look_again(std::move(source), problems);
  REQUIRE(again.has_value());
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].path == tree.at("d/.a.part"));
  CHECK(again.value().files.size() == 8);
}

TEST_CASE("C3 looked at again, a file is as it is now, and one that vanished is a problem",
          "[engine][file]") {
  const SmallTree tree;
  const ScanVolume found = scanned({tree.at("d"), tree.at("d/s/b")});
  write_file(tree.folder / "d/a", "longer");
  fs::remove(tree.folder / "d/s/t/c");
  std::vector<ScanProblem> problems;
  Result<SourceFiles> again = look_again(found.source, problems);
  REQUIRE(again.has_value());
  CHECK(again.value().files.size() == found.source.files.size() - 1);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].kind == ScanProblemKind::vanished);
  CHECK(problems[0].path == tree.at("d/s/t/c"));
  for (std::size_t i = 0; i < again.value().files.size(); ++i) {
    const ManifestEntry& entry = again.value().manifest.files[i];
    if (entry.name == "d/a") CHECK(entry.size == 6);
    CHECK(again.value().files[i].fd.is_open() == !entry.is_folder());
  }
  // All may have gone.
  write_file(tree.folder / "d/e/one", "");
  const ScanVolume one = scanned({tree.at("d/e/")});
  fs::remove(tree.folder / "d/e/one");
  const Result<SourceFiles> none = look_again(one.source, problems);
  REQUIRE(none.has_value());
  CHECK(none.value().files.empty());
  // One that was named itself has to be there.
  fs::remove(tree.folder / "d/s/b");
  problems.clear();
  CHECK(look_again(found.source, problems).has_error());
}

TEST_CASE("beyond the files that stay open the others are opened in their turn", "[engine][file]") {
  const TempFolder from;
  for (std::size_t i = 0; i < open_files_kept + 20; ++i)
    write_file(from / std::to_string(i), std::to_string(i));
  ScanVolume found = scanned({from.path().string() + "/"});
  std::size_t open_count = 0;
  SourceOpener opener;
  for (std::size_t i = 0; i < found.source.files.size(); ++i) {
    if (found.source.files[i].fd.is_open()) ++open_count;
    struct stat status {};
    REQUIRE(opener.look_at_file(found.source, i, status).has_value());
    CHECK(is_within(found.source.files[i].fence, status));
  }
  CHECK(open_count == open_files_kept);
}
