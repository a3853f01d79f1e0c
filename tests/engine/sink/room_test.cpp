// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Room: the arithmetic, to its edges, and that a volume takes inodes and gives them back.
#include "engine/sink/destination.hpp"

#include <cerrno>
#include <limits>

#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

struct statvfs disk_of(std::uint64_t blocks_free, std::uint64_t files_total, std::uint64_t files) {
  struct statvfs disk {};
  disk.f_frsize = 4096;
  disk.f_bavail = blocks_free;
  disk.f_files = files_total;
  disk.f_favail = files;
  return disk;
}

constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();

/// take prepares a volume of new names, and gives the errno.
int take(const std::shared_ptr<Destination>& destination, std::uint32_t names,
         std::unique_ptr<SinkVolume>* volume = nullptr) {
  Manifest manifest;
  for (std::uint32_t i = 0; i < names; ++i)
    manifest.files.push_back({.name = "n" + std::to_string(i), .size = 0, .mode = 0644});
  auto made = SinkVolume::prepare(destination, whole_list(manifest), {.on_exist = OnExist::resume});
  if (made.has_error()) return made.error().errno_value;
  if (volume != nullptr) *volume = std::move(made).value();
  return 0;
}

std::shared_ptr<Destination> open_with(const TempFolder& to, std::uint64_t reserve_files,
                                       bool is_unchecked) {
  auto opened = Destination::open({.folder = to.path().string(),
                                   .reserve_bytes = 0,
                                   .reserve_files = reserve_files,
                                   .is_room_unchecked = is_unchecked});
  REQUIRE(opened.has_value());
  return std::move(opened).value();
}

}  // namespace

TEST_CASE("Z2 room is held against bytes and inodes, less the reserve and what is taken",
          "[engine][file]") {
  const auto is_there = [](const Room& needed, const Room& taken, const struct statvfs& disk) {
    return check_room(needed, taken, {.bytes = 4096, .files = 16}, disk).has_value();
  };
  const struct statvfs disk = disk_of(10, 1000, 100);
  CHECK(is_there({9 * 4096, 84}, {}, disk));
  CHECK_FALSE(is_there({9 * 4096 + 1, 0}, {}, disk));
  CHECK_FALSE(is_there({0, 85}, {}, disk));
  CHECK(is_there({8 * 4096, 80}, {4096, 4}, disk));
  CHECK_FALSE(is_there({8 * 4096 + 1, 80}, {4096, 4}, disk));
  CHECK_FALSE(is_there({8 * 4096, 81}, {4096, 4}, disk));
  CHECK(is_there({1, huge}, {0, huge}, disk_of(10, 0, 0)));  // it counts no inodes
  CHECK_FALSE(is_there({0, 1}, {}, disk_of(10, 1000, 16)));
  CHECK(is_there({1, 0}, {}, disk_of(10, 1000, 0)));  // none are needed
  CHECK(is_there({0, 1}, {}, disk_of(0, 1000, 100)));
  CHECK_FALSE(is_there({huge, 0}, {}, disk_of(huge / 8192, 0, 0)));
  CHECK_FALSE(is_there({1, 0}, {huge, 0}, disk));

  const auto refused = check_room({0, 85}, {}, {.bytes = 0, .files = 16}, disk);
  REQUIRE(refused.has_error());
  CHECK(refused.error().errno_value == ENOSPC);
  CHECK(refused.error().message().find("85 files and folders") != std::string::npos);
  CHECK(refused.error().message().find("inodes for 84") != std::string::npos);
}

TEST_CASE("Z2 a volume takes an inode per entry that it makes, and gives it back once",
          "[engine][file]") {
  const TempFolder to{in_memory()};
  struct statvfs disk {};
  REQUIRE(::statvfs(to.path().c_str(), &disk) == 0);
  if (disk.f_files == 0) return;  // nothing to count there
  // Others make files on this disk meanwhile: the bounds are far from each other.
  constexpr std::uint32_t room = 10'000;
  REQUIRE(disk.f_favail > room);
  const auto open = [&](bool is_unchecked) {
    return open_with(to, disk.f_favail - room, is_unchecked);
  };
  const auto destination = open(false);
  std::unique_ptr<SinkVolume> first;
  REQUIRE(take(destination, 6000, &first) == 0);
  CHECK(take(destination, 6000) == ENOSPC);
  CHECK(take(destination, 2000) == 0);  // and is given back
  CHECK(take(destination, 2000) == 0);
  for (std::uint32_t entry = 0; entry < 4000; ++entry)
    for (int again = 0; again < 2; ++again) first->count_made(entry);
  CHECK(take(destination, 6000) == 0);
  CHECK(take(destination, 9500) == ENOSPC);
  first.reset();
  CHECK(take(destination, 9500) == 0);
  CHECK(take(destination, 12'000) == ENOSPC);
  CHECK(take(open(true), 12'000) == 0);
  write_file(to / "n0", "");
  for (std::uint32_t i = 1; i < 3000; ++i) write_file(to / ("n" + std::to_string(i)), "");
  CHECK(take(open(false), 9500) == 0);  // what is there needs none
}

TEST_CASE("Z2 a small file in the stage has its inode, and is not counted again",
          "[engine][file]") {
  const TempFolder from{in_memory()}, to{in_memory()};
  constexpr std::uint32_t staged = 4000;  // less than a batch, which would be committed
  for (std::uint32_t i = 0; i < staged; ++i) write_file(from / std::to_string(i), "x");
  write_file(from / "last", std::string(packed_bytes_max, 'x'));
  write_file(from / "later", std::string(packed_bytes_max, 'x'));
  std::vector<std::string> paths;
  for (std::uint32_t i = 0; i < staged; ++i) paths.push_back((from / std::to_string(i)).string());
  paths.insert(paths.end(), {(from / "last").string(), (from / "later").string()});
  SourceFiles files = open_files(paths);

  struct statvfs disk {};
  REQUIRE(::statvfs(to.path().c_str(), &disk) == 0);
  if (disk.f_files == 0) return;  // nothing to count there
  const auto destination = open_with(to, disk.f_favail - staged * 3 / 2, false);
  SinkSettings settings = sink_settings(to.path(), files.manifest);
  PreparedSink sink{settings, destination};
  REQUIRE(sink.add(files.manifest, true).has_value());
  CHECK(take(destination, staged) == ENOSPC);
  Source source{{.slots = 16}, make_io()};
  source.add(answered_volume(std::move(files), sink));
  Wire wire{&source, sink};
  wire.is_cut = [](const BlockRef& block) { return block.offset > 0; };
  static_cast<void>(wire.run());
  CHECK(names_in(to.path()).size() > staged);
  CHECK(take(destination, staged / 4) == 0);
  sink.close();
}
