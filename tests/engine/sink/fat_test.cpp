// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Names that the destination cannot hold, or takes for one: a Sink on a file system with FAT's
// names and without modes. Needs root for the mount; elsewhere the program says why, and ends with
// 77.
#include <cctype>
#include <map>

#include "engine/list/tree_scan.hpp"
#include "engine/sink/name_probe.hpp"
#include "tests/engine/sink/file_support.hpp"
#include "tests/engine/sink/slow_disk.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

/// Fat is such a disk; `backing` shows what it holds.
struct Fat {
  Fat() {
    if (!disk.is_mounted()) skip(fuse_reason);
  }
  [[nodiscard]] std::shared_ptr<Destination> open() const {
    Result<std::shared_ptr<Destination>> opened =
        Destination::open({.folder = mount_point.path().string()});
    REQUIRE(opened.has_value());
    return opened.value();
  }
  const TempFolder backing, mount_point;
  const SlowDisk disk{backing.path(), mount_point.path(), {"--fat"}};
};

constexpr std::uint64_t large = packed_bytes_max + 1;

/// A list of names; one with a slash at its end is a folder's, and one of "L.." a large file's.
Manifest list_of(const std::vector<std::string>& names) {
  Manifest manifest;
  for (const std::string& name : names) {
    const bool is_folder = name.ends_with('/');
    manifest.files.push_back({.name = name.substr(0, name.size() - (is_folder ? 1 : 0)),
                              .size = is_folder               ? 0
                                      : name.starts_with('L') ? large
                                                              : 5,
                              .mode = 0644,
                              .mtime_ns = 1'000'000'000,
                              .kind = is_folder ? EntryKind::folder : EntryKind::file});
  }
  return manifest;
}

/// Names of a list as files below `folder`, each with its own name as content, and that list.
SourceFiles files_of(const TempFolder& folder, const std::vector<std::string>& names) {
  const fs::path top = folder / "top";
  fs::create_directories(top);
  for (const std::string& name : names) {
    if (name.ends_with('/'))
      fs::create_directories(top / name);
    else
      write_file(top / name, name + std::string(name.starts_with('L') ? large : 0, '-'));
  }
  const std::vector<std::string> paths{top.string() + "/"};
  auto found = scan(paths, {});
  REQUIRE(found.has_value());
  return std::move(found.value().source);
}

/// held_of: what FAT holds of a list, sorted. Of two names that it takes for one, the first.
std::vector<std::string> held_of(const Manifest& manifest) {
  std::map<std::string, std::string> spellings;  // by what FAT makes of a path
  std::vector<std::string> held;
  for (const ManifestEntry& entry : manifest.files) {
    bool is_held =
        entry.name.find_first_of(":?|") == std::string::npos && !entry.name.ends_with('.');
    for (std::size_t end = 0; is_held && end < entry.name.size(); ++end) {
      end = std::min(entry.name.find('/', end), entry.name.size());
      const std::string path = entry.name.substr(0, end);
      std::string lower = path;
      for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      is_held = spellings.emplace(lower, path).first->second == path;
    }
    if (is_held) held.push_back(entry.name);
  }
  std::ranges::sort(held);
  return held;
}

}  // namespace

TEST_CASE("each name that FAT refuses or folds is found, with all below it", "[file][names]") {
  const Fat fat;
  const std::vector<std::pair<std::string, int>> names{{"ok", 0},
                                                       {"a:b", EINVAL},
                                                       {"x?", EINVAL},
                                                       {"dot.", EINVAL},
                                                       {"dot", 0},
                                                       {"Case", 0},
                                                       {"case", EEXIST},
                                                       {"Dir/", 0},
                                                       {"Dir/f", 0},
                                                       {"dir/", EEXIST},
                                                       {"dir/g", EEXIST},
                                                       {"dir/s/t", EEXIST},
                                                       {"bad|/", EINVAL},
                                                       {"bad|/h", EINVAL},
                                                       {"hidden/a", 0},
                                                       {"HIDDEN/b", EEXIST},
                                                       {"L:", EINVAL},
                                                       {"Large", 0},
                                                       {"LARGE", EEXIST},
                                                       {"end ", EINVAL},
                                                       {"Dir/s/", 0},
                                                       {"Dir/S/u", EEXIST},
                                                       {"both.txt", 0},
                                                       {"BOTH.txt/", EEXIST},
                                                       {".Onehop-Stage2", 0},
                                                       {".ONEHOP-SESSION", EEXIST}};
  std::vector<std::string> list;
  std::vector<int> expected;
  for (const auto& [name, fault] : names) {
    list.push_back(name);
    expected.push_back(fault);
  }
  const std::shared_ptr<Destination> destination = fat.open();
  CHECK(destination->names().check(list_of(list), {}) == expected);
  CHECK(names_in(fat.backing.path()).size() > 1);  // what was tried, for the volumes to come
  destination->names().close();
  CHECK(names_in(fat.backing.path()).empty());
}

TEST_CASE("entries of different volumes are held against each other", "[file][names]") {
  const Fat fat;
  const std::shared_ptr<Destination> destination = fat.open();
  CHECK(destination->names().check(list_of({"Dir/", "Dir/a", "b"}), {}) ==
        std::vector<int>{0, 0, 0});
  CHECK(destination->names().check(list_of({"Dir/A", "Dir/c", "B", "dir/d"}), {}) ==
        std::vector<int>{EEXIST, 0, EEXIST, EEXIST});
}

TEST_CASE("what cannot have its name is left out, and no file gets another's", "[file][names]") {
  const Fat fat;
  const TempFolder from;
  // More small files than packed_files_min, so that they are packed; and large ones.
  std::vector<std::string> names{"Case",  "case", "a:b",   "Large", "LARGE", "L:",  "Dir/",
                                 "Dir/f", "dir/", "dir/f", "q?/",   "q?/f",  "dot."};
  for (std::size_t i = 0; i < packed_files_min; ++i) names.push_back("plain" + std::to_string(i));
  const OnExist on_exist = GENERATE(OnExist::ask, OnExist::overwrite, OnExist::rename);
  SourceFiles files = files_of(from, names);
  const std::vector<std::string> there = held_of(files.manifest);
  const Outcome outcome = send_files(std::move(files), fat.mount_point.path(), on_exist, {});
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK_FALSE(outcome.source_failure.has_value());
  std::vector<std::string> found = names_in(fat.backing.path());
  std::erase(found, ".onehop-session");
  CHECK(found == there);
  CHECK(outcome.done.size() == there.size());
  for (const std::string& name : found)
    if (fs::is_regular_file(fat.backing / name))
      CHECK(read_file(fat.backing / name).substr(0, name.size()) == name);
}

TEST_CASE("a name that somebody left in another case is an ordinary conflict", "[file][names]") {
  const Fat fat;
  const TempFolder from;
  write_file(fat.backing / "CASE", "another");
  std::vector<Conflict> conflicts;
  SinkSettings settings = sink_settings(fat.mount_point.path(), list_of({"case", "a:b"}));
  settings.conflicts = &conflicts;
  const auto refused = prepare_sink(list_of({"case", "a:b"}), settings);
  REQUIRE(refused.has_error());
  REQUIRE(conflicts.size() == 1);  // not of the name that cannot be
  CHECK(conflicts[0].file == 0);
  settings.on_exist = OnExist::skip;
  const auto kept = make_sink(list_of({"case", "a:b"}), settings);
  CHECK(kept->actions() == std::vector{FileAction::keep, FileAction::name_refused});
}
