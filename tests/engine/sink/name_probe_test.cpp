// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Names on a file system that holds all of them, and what a probe that was killed leaves. What
// others refuse and fold: fat_test.cpp.
#include "engine/sink/name_probe.hpp"
#include "engine/disk/clean.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

const std::string probe_folder(32, 'a');

/// left_stage: what a killed probe leaves. A file in it has `content`.
fs::path left_stage(const TempFolder& folder, const std::string& content) {
  fs::create_directories(folder / ".onehop-stage" / probe_folder);
  fs::permissions(folder / ".onehop-stage", fs::perms::owner_all);
  write_file(folder / ".onehop-stage" / probe_folder / "Some name", content);
  return folder / ".onehop-stage";
}

}  // namespace

TEST_CASE("where odd names stand side by side no name is tried, and nothing is left",
          "[engine][file][names]") {
  const TempFolder folder{in_memory()};
  const Result<std::shared_ptr<Destination>> destination =
      Destination::open({.folder = folder.path().string()});
  REQUIRE(destination.has_value());
  Manifest manifest;
  for (const char* name : {"a", "A", "a:b", "dot.", "\xff", "\xc3\xa9", "e\xcc\x81"})
    manifest.files.push_back({.name = name, .size = 1, .mode = 0644});
  CHECK(destination.value()->names().check(manifest, {}).empty());
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("names that a killed session tried are removed by the next one and by a clean",
          "[engine][file][names]") {
  const TempFolder folder;
  const bool is_clean = GENERATE(true, false);
  const fs::path stage = left_stage(folder, "");
  if (is_clean) {
    REQUIRE(clean({.folder = folder.path().string()}, [](const CleanItem&) {}).has_value());
  } else {
    const Fd root{::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    Stage::remove_left(root.get());
  }
  CHECK_FALSE(fs::exists(stage));
}

TEST_CASE("a folder in a stage with a file that has content is somebody's",
          "[engine][file][names]") {
  const TempFolder folder;
  const fs::path stage = left_stage(folder, "mine");
  const Fd root{::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  Stage::remove_left(root.get());
  REQUIRE(clean({.folder = folder.path().string()}, [](const CleanItem&) {}).has_value());
  CHECK(read_file(stage / probe_folder / "Some name") == "mine");
}

TEST_CASE("a stage of another mode is somebody's, and keeps its mode", "[engine][file][names]") {
  const TempFolder folder;
  const fs::path stage = left_stage(folder, "");
  const fs::perms open_to_all = fs::perms::owner_all | fs::perms::others_read;
  fs::permissions(stage, open_to_all);
  const Fd root{::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  Stage::remove_left(root.get());
  CHECK(fs::exists(stage / probe_folder / "Some name"));
  CHECK(fs::status(stage).permissions() == open_to_all);
}
