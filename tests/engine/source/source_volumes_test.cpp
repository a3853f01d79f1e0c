// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A Source whose list comes volume by volume.

#include "engine/disk/file_thread.hpp"
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
  SpscRing<BlockRef> out{1024}, back{64};
  std::vector<BlockRef> messages;
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

  /// run turns until nothing has moved for a while.
  void run() {
    BlockRef message;
    for (int idle = 0; idle < 50;) {
      idle = source.turn(monotonic_now(), out, back) == 0 ? idle + 1 : 0;
      for (; out.pop(message); messages.push_back(message))
        if (message.kind == FileMessageKind::block) REQUIRE(back.push(message));
      if (idle > 0) ::usleep(200);
    }
  }
  [[nodiscard]] std::vector<std::uint32_t> files_of(FileMessageKind kind) const {
    std::vector<std::uint32_t> files;
    for (const BlockRef& message : messages)
      if (message.kind == kind) files.push_back(message.file);
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
  CHECK(test.messages.empty());
  CHECK(test.source.nap_max() == nap_max_at_end);
  test.source.add(test.volume({block_bytes + 1, 0}));
  test.run();
  CHECK(test.files_of(FileMessageKind::block) == Files{0, 0, 1});
  CHECK(test.files_of(FileMessageKind::root) == Files{0, 1});
  CHECK(test.source.nap_max() == nap_max_at_end);
  CHECK_FALSE(test.source.is_over());

  test.source.add(test.volume({}));
  test.source.add(test.volume({3 * block_bytes}));
  test.run();
  CHECK(test.files_of(FileMessageKind::root) == Files{0, 1, 4});
  CHECK(test.files_of(FileMessageKind::end_of_files).empty());
  test.source.add(test.last_volume({}));
  test.run();
  CHECK(test.messages.back().kind == FileMessageKind::end_of_files);
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
  const Claim claim{0, crypto::ContentMac{{}}.tag(std::as_bytes(std::span{held}))};
  second.answer = std::make_shared<const Answer>(
      Answer{.actions = {FileAction::send, FileAction::keep, FileAction::resume},
             .claims = {{}, {}, {claim}}});
  test.source.add(std::move(second));
  SourceVolume third = test.volume(sizes, true);
  third.is_last = true;
  test.source.add(std::move(third));
  test.run();

  Files roots = test.files_of(FileMessageKind::root);
  std::ranges::sort(roots);
  CHECK(roots == Files{3, 40, 41, 43, 48, 85});
  CHECK(test.files_of(FileMessageKind::skipped) == Files{43});
  const auto digest_of_pack = [&](std::uint32_t file) {
    return std::ranges::find_if(test.messages,
                                [&](const BlockRef& message) {
                                  return message.kind == FileMessageKind::root &&
                                         message.file == file;
                                })
        ->digest;
  };
  CHECK(digest_of_pack(40) != digest_of_pack(85));  // of other bytes
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
  CHECK(test.files_of(FileMessageKind::root).size() == 40);
}

TEST_CASE("a failure of a later volume names the file's index on the wire", "[engine][file]") {
  Volumes test;
  test.source.add(test.volume({5, 6}));
  const bool is_packed = GENERATE(false, true);
  SourceVolume second = test.volume(std::vector<std::size_t>(40, 10), is_packed);
  write_file(test.from / std::to_string(3 + 20), "changed");
  test.source.add(std::move(second));
  test.run();
  CHECK(test.files_of(FileMessageKind::failed) == Files{3 + 20});
  CHECK(test.source.is_over());
}

// Goal:   volumes may be added while the thread reads.
// Method: this thread adds a volume at a time and plays the engine; nobody wakes the reader.
TEST_CASE("volumes that come while the source's thread runs are read", "[engine][file]") {
  constexpr std::uint32_t volumes_total = 100;
  Volumes test;
  auto source = std::make_unique<Source>(SourceOptions{.slots = 16}, make_io());
  Source& adder = *source;
  FileThread reader{std::move(source), test.out, test.back};
  REQUIRE(reader.start());
  std::uint32_t added = 0;
  const Instant begin = monotonic_now();
  const auto has_ended = [&test] {
    return !test.messages.empty() && test.messages.back().kind == FileMessageKind::end_of_files;
  };
  for (BlockRef message; !has_ended() && monotonic_now() - begin < 60s;) {
    if (added < volumes_total) {
      SourceVolume volume = test.volume({3, 2 * block_bytes});
      volume.is_last = ++added == volumes_total;
      adder.add(std::move(volume));
    }
    for (; test.out.pop(message); test.messages.push_back(message))
      if (message.kind == FileMessageKind::block) REQUIRE(test.back.push(message));
    ::usleep(100);
  }
  reader.request_stop();
  reader.join();
  for (BlockRef message; test.out.pop(message);) test.messages.push_back(message);
  const Files roots = test.files_of(FileMessageKind::root);
  CHECK(roots.size() == 2 * volumes_total);
  CHECK(std::ranges::is_sorted(roots));
  CHECK(test.messages.back().kind == FileMessageKind::end_of_files);
}
