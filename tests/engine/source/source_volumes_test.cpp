// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A Source whose list comes volume by volume.

#include "engine/disk/thread/file_thread.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

/// Files named by number, in volumes, and what the Source made of them.
struct Volumes {
  TempFolder from;
  Source source{{.slots = 16}, make_io()};
  FileRings rings{1024};
  std::vector<BlockRef> blocks;
  std::vector<RootRead> roots;
  std::vector<FileFailed> failures;
  std::uint32_t next_file = 0;

  /// volume makes files of these sizes, and packs the small ones if it is told to.
  SourceVolume volume(const std::vector<std::size_t>& sizes, bool is_packed = false) {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      paths.push_back((from / std::to_string(next_file + i)).string());
      write_file(paths.back(), random_bytes(sizes[i], next_file + i));
    }
    SourceVolume made;
    made.first_file = next_file;
    if (!paths.empty()) *made.files = open_files(paths);
    if (is_packed)
      made.answer = std::make_shared<const Answer>(
          Answer{.pack = std::make_shared<const Pack>(
                     Pack::make(made.files->manifest, crypto::DigestKind::xxh3,
                                std::vector<FileAction>(sizes.size(), FileAction::send)))});
    next_file += static_cast<std::uint32_t>(sizes.size()) + 1;
    return made;
  }
  SourceVolume last_volume(const std::vector<std::size_t>& sizes) {
    SourceVolume made = volume(sizes);
    made.is_last = true;
    return made;
  }

  void tell(const FileCommand& command) { REQUIRE(rings.commands.push(command)); }
  /// run turns until nothing has moved for a while.
  void run() {
    for (int idle = 0; idle < 50;) {
      idle = source.turn(monotonic_now(), rings) == 0 ? idle + 1 : 0;
      take();
      if (idle > 0) ::usleep(200);
    }
  }
  /// take empties the rings and gives buffers back.
  void take() {
    for (BlockRef block; rings.to_engine.pop(block); blocks.push_back(block))
      if (block.kind == BlockKind::block) REQUIRE(rings.from_engine.push(block));
    for (FileEvent event; rings.events.pop(event);) {
      if (const auto* read = std::get_if<RootRead>(&event)) roots.push_back(*read);
      if (const auto* failed = std::get_if<FileFailed>(&event)) failures.push_back(*failed);
    }
  }
  [[nodiscard]] std::vector<std::uint32_t> files_of(BlockKind kind) const {
    std::vector<std::uint32_t> files;
    for (const BlockRef& block : blocks)
      if (block.kind == kind) files.push_back(block.file);
    return files;
  }
  [[nodiscard]] std::vector<std::uint32_t> files_read() const {
    std::vector<std::uint32_t> files;
    for (const RootRead& read : roots) files.push_back(read.file);
    return files;
  }
};

using Files = std::vector<std::uint32_t>;

std::size_t open_descriptors() {
  const fs::directory_iterator all{"/proc/self/fd"};
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace

TEST_CASE("a source reads volume after volume, and waits for the next one", "[engine][file]") {
  Volumes test;
  test.run();
  CHECK(test.blocks.empty());
  CHECK(test.source.nap_max() == nap_max_at_end);
  test.source.add(test.volume({block_bytes + 1, 0}));
  test.run();
  CHECK(test.files_of(BlockKind::block) == Files{0, 0, 1});
  CHECK(test.files_read() == Files{0, 1});
  CHECK(test.source.nap_max() == nap_max_at_end);
  CHECK_FALSE(test.source.is_over());

  test.source.add(test.volume({}));
  test.source.add(test.volume({3 * block_bytes}));
  test.run();
  CHECK(test.files_read() == Files{0, 1, 4});
  CHECK(test.files_of(BlockKind::end_of_files).empty());
  test.source.add(test.last_volume({}));
  test.run();
  CHECK(test.blocks.back().kind == BlockKind::end_of_files);
  CHECK(test.source.is_over());
  CHECK(test.source.nap_max() == nap_max_reading);
}

TEST_CASE("each volume of a source has its own pack, claims and wishes", "[engine][file]") {
  Volumes test;
  std::vector<std::size_t> sizes(40, 10);
  sizes[3] = packed_bytes_max + 1;
  test.source.add(test.volume(sizes, true));
  SourceVolume second = test.volume({10, 20, 30});
  const std::string held = random_bytes(30, 43);
  second.answer = std::make_shared<const Answer>(
      Answer{.actions = {FileAction::send, FileAction::keep, FileAction::resume},
             .held = {{}, {}, {{0, 1}}}});
  const std::uint32_t held_file = second.first_file + 2;
  test.source.add(std::move(second));
  SourceVolume third = test.volume(sizes, true);
  third.is_last = true;
  test.source.add(std::move(third));
  test.run();
  CHECK(test.files_of(BlockKind::skipped).empty());
  CHECK_FALSE(test.source.is_over());
  test.tell(HeldBlock{held_file, 0, crypto::ContentMac{{}}.tag(std::as_bytes(std::span{held}))});
  test.run();

  Files roots = test.files_read();
  std::ranges::sort(roots);
  CHECK(roots == Files{3, 40, 41, 43, 48, 85});
  CHECK(test.files_of(BlockKind::skipped) == Files{43});
  const auto root_of = [&](std::uint32_t file) {
    return std::ranges::find(test.roots, file, &RootRead::file)->root;
  };
  CHECK(root_of(40) != root_of(85));  // of other bytes
  CHECK(test.source.is_over());
}

// Goal:   what was handed over takes no descriptors, however many volumes there are.
TEST_CASE("a source lets go of a volume that it has handed over", "[engine][file]") {
  Volumes test;
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    SourceVolume volume = test.volume({5, block_bytes, 7});
    // What is kept stays open until its volume goes.
    volume.answer = std::make_shared<const Answer>(
        Answer{.actions = {FileAction::send, FileAction::send, FileAction::keep}});
    test.source.add(std::move(volume));
    test.run();
    CHECK(open_descriptors() == before);
  }
  CHECK(test.files_read().size() == 40);
}

TEST_CASE("a failure of a later volume names the file's index on the wire", "[engine][file]") {
  Volumes test;
  test.source.add(test.volume({5, 6}));
  const bool is_packed = GENERATE(false, true);
  SourceVolume second = test.volume(std::vector<std::size_t>(40, 10), is_packed);
  write_file(test.from / std::to_string(3 + 20), "changed");
  test.source.add(std::move(second));
  test.run();
  REQUIRE(test.failures.size() == 1);
  CHECK(test.failures[0].file == 3 + 20);
  CHECK(test.source.is_over());
}

// Goal:   volumes may be added while the thread reads.
// Method: this thread adds a volume at a time and plays the engine; nobody wakes the reader.
TEST_CASE("volumes that come while the source's thread runs are read", "[engine][file]") {
  constexpr std::uint32_t volumes_total = 100;
  Volumes test;
  auto source = std::make_unique<Source>(SourceOptions{.slots = 16}, make_io());
  Source& adder = *source;
  FileThread reader{std::move(source), test.rings};
  REQUIRE(reader.start());
  std::uint32_t added = 0;
  const Instant begin = monotonic_now();
  const auto has_ended = [&test] {
    return !test.blocks.empty() && test.blocks.back().kind == BlockKind::end_of_files;
  };
  while (!has_ended() && monotonic_now() - begin < 60s) {
    if (added < volumes_total) {
      SourceVolume volume = test.volume({3, 2 * block_bytes});
      volume.is_last = ++added == volumes_total;
      adder.add(std::move(volume));
    }
    test.take();
    ::usleep(100);
  }
  reader.request_stop();
  reader.join();
  test.take();
  const Files roots = test.files_read();
  CHECK(roots.size() == 2 * volumes_total);
  CHECK(std::ranges::is_sorted(roots));
  CHECK(test.blocks.back().kind == BlockKind::end_of_files);
}
