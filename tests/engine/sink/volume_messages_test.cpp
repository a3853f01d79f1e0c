// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A Sink alone: what it tells of volumes, and what it does with messages that do not fit them.
#include "tests/engine/sink/tree_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

using Files = std::vector<std::uint32_t>;

/// A Sink alone, and the messages that a session would give it.
struct Receiving {
  explicit Receiving(const fs::path& to) {
    auto made = prepare_sink(SinkSettings{.folder = to.string()});
    if (made.has_error()) FAIL(made.error().message());
    sink = std::move(made).value();
  }
  void add(const std::vector<ManifestEntry>& entries, bool is_last) {
    const Manifest manifest{entries};
    sink->approve(manifest);
    const auto added = sink->add(manifest, is_last);
    if (added.has_error()) FAIL(added.error().message());
  }
  /// file gives the Sink a file of one block, whole, and a checkpoint if it is told to.
  void file(std::uint32_t index, const std::string& content, bool has_checkpoint = false) {
    turn();
    REQUIRE_FALSE(free.empty());
    BlockRef block = free.back();
    free.pop_back();
    block.file = index;
    block.length = static_cast<std::uint32_t>(content.size());
    std::memcpy(block.data, content.data(), content.size());
    const Digest digest =
        crypto::block_digest(crypto::DigestKind::xxh3, {block.data, block.length});
    crypto::DigestTree tree{crypto::DigestKind::xxh3};
    tree.add(digest);
    REQUIRE(rings.from_engine.push(block));
    REQUIRE(rings.commands.push(AnnouncedDigest{.file = index, .digest = digest}));
    REQUIRE(rings.commands.push(AnnouncedRoot{index, tree.root()}));
    if (has_checkpoint) REQUIRE(rings.from_engine.push({.kind = BlockKind::checkpoint}));
    turn();
  }
  void turn() {
    for (int i = 0; i < 50; ++i) {
      static_cast<void>(sink->turn(monotonic_now(), rings));
      for (BlockRef block; rings.to_engine.pop(block);) free.push_back(block);
      for (FileEvent event; rings.events.pop(event);) told.push_back(event);
      ::usleep(100);
    }
  }
  [[nodiscard]] Files files_told() const {
    Files files;
    for (const FileEvent& event : told)
      if (const auto* done = std::get_if<FileFinished>(&event)) files.push_back(done->file);
    return files;
  }

  std::unique_ptr<PreparedSink> sink;
  FileRings rings{64};
  std::vector<BlockRef> free;
  std::vector<FileEvent> told;
};

ManifestEntry small(const std::string& name, std::uint64_t size = 1) {
  return {.name = name, .size = size, .mode = 0644};
}

std::size_t open_descriptors() {
  const fs::directory_iterator all{"/proc/self/fd"};
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace

// Goal:   who has heard of all files has heard of a session that is complete.
TEST_CASE("a volume's last file is told when all before it have ended", "[engine][file]") {
  const TempFolder to;
  Receiving test{to.path()};
  test.add({small("a"), small("b")}, false);
  test.add({small("c"), small("d")}, false);
  test.add({}, true);
  test.file(3, "c");
  test.file(4, "d");
  CHECK(test.files_told() == Files{3});
  CHECK(read_file(to / "d") == "d");
  test.file(1, "b");
  CHECK(test.files_told() == Files{3, 1});
  CHECK_FALSE(test.sink->is_over());
  test.file(0, "a");
  CHECK(test.files_told() == Files{3, 1, 0, 4});
  CHECK(test.sink->is_over());
}

// Goal:   a checkpoint has what was said before it, although that came over another ring.
// Method: block, digest, root and checkpoint are there at once. Bounds: exact.
TEST_CASE("a checkpoint follows the digests and roots that were said before it", "[engine][file]") {
  const TempFolder to;
  Receiving test{to.path()};
  test.add({small("a")}, true);
  const bool is_last = GENERATE(false, true);
  if (is_last) REQUIRE(test.rings.commands.push(EndAtCheckpoint{}));
  test.file(0, "a", true);
  CHECK(test.files_told() == Files{0});
  REQUIRE(test.told.size() == 2);
  CHECK(std::holds_alternative<CheckpointMade>(test.told[1]));
  CHECK(read_file(to / "a") == "a");
}

TEST_CASE("a checkpoint tells of all files that are in place", "[engine][file]") {
  const TempFolder to;
  Receiving test{to.path()};
  test.add({small("a")}, false);
  test.add({small("b")}, true);
  test.file(2, "b");
  CHECK(test.told.empty());
  REQUIRE(test.rings.from_engine.push({.kind = BlockKind::checkpoint}));
  test.turn();
  CHECK(test.files_told() == Files{2});
  REQUIRE(test.told.size() == 2);
  CHECK(std::holds_alternative<CheckpointMade>(test.told[1]));
  test.file(0, "a");
  CHECK(test.files_told() == Files{2, 0});
  CHECK(test.sink->is_over());
}

TEST_CASE("what comes late of a volume that has ended changes nothing", "[engine][file]") {
  const TempFolder to;
  Receiving test{to.path()};
  test.add({small("a")}, false);
  test.file(0, "a");
  CHECK(test.files_told() == Files{0});
  const std::size_t free = test.free.size();
  test.file(0, "x");
  REQUIRE(test.rings.commands.push(AnnouncedRoot{.file = 1}));  // of a pack, were there one
  test.turn();
  CHECK(test.free.size() == free);
  CHECK(test.told.size() == 1);
  CHECK(read_file(to / "a") == "a");
  test.add({small("b")}, true);
  test.file(2, "b");
  CHECK(test.files_told() == Files{0, 2});
  CHECK(test.sink->is_over());
}

TEST_CASE("D4 a message of a file that no volume has, or that is packed, ends the session",
          "[engine][file]") {
  const TempFolder to;
  Receiving test{to.path()};
  test.add({small("folder/a"),
            {.name = "folder", .mode = 0755, .kind = EntryKind::folder},
            small("b", 1U << 20)},
           false);
  const std::uint32_t file = GENERATE(0U, 1U, 3U, 4U, 77U);
  const bool is_skipped = GENERATE(false, true);
  CAPTURE(file, is_skipped);
  if (is_skipped)
    REQUIRE(test.rings.from_engine.push({.file = file, .kind = BlockKind::skipped}));
  else
    REQUIRE(test.rings.commands.push(AnnouncedDigest{.file = file}));
  test.turn();
  REQUIRE(test.told.size() == 1);
  CHECK(std::get<FileFailed>(test.told[0]).failure == FileFailure::protocol);
  test.sink->close();
  CHECK(names_in(to.path()).empty());
}

TEST_CASE("a volume that has ended takes neither descriptors nor folders", "[engine][file]") {
  const TempFolder to;
  Receiving test{to.path()};
  test.turn();
  std::size_t before = 0;
  for (std::uint32_t i = 0; i < 50; ++i) {
    test.add({small("d" + std::to_string(i) + "/a"), small("b" + std::to_string(i))}, i == 49);
    test.file(3 * i, "a");
    test.file(3 * i + 1, "b");
    if (i == 3) before = open_descriptors();
    if (i > 3) CHECK(open_descriptors() <= before);
  }
  CHECK(test.sink->is_over());
  test.sink->close();
  CHECK(names_in(to.path()).size() == 150);
}
