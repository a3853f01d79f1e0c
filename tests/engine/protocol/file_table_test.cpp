// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Files that come volume by volume, in the table and through the Receiver.
#include <malloc.h>

#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <vector>

#include "tests/engine/protocol/receiver_bench.hpp"

namespace onehop::protocol {
namespace {

using Sizes = std::vector<std::uint64_t>;
using Verdict = Placement::Verdict;

}  // namespace

TEST_CASE("a volume that does not follow the last one is refused", "[transfer][files]") {
  FileTable files;
  FileVolume first{7, Sizes{1, 2, 3}}, gap{11, Sizes{1}}, again{9, Sizes{1}}, next{10, Sizes{1}};
  CHECK(files.is_complete());
  REQUIRE(files.add(first));
  CHECK_FALSE(files.add(gap));
  CHECK_FALSE(files.add(again));
  CHECK_FALSE(files.is_complete());
  CHECK(files.find(9) == &first);
  CHECK(files.find(10) == nullptr);
  CHECK_FALSE(files.is_over(10));
  REQUIRE(files.add(next));
  CHECK(files.find(10) == &next);
  CHECK(files.find(9) == &first);
  CHECK(files.find(6) == nullptr);
  CHECK(files.is_over(6));
}

TEST_CASE("volumes leave the table in order, when all their blocks are whole",
          "[transfer][files]") {
  FileTable files;
  FileVolume first{0, Sizes{2 * block_bytes, file_without_blocks}}, second{2, Sizes{0}};
  FileVolume empty{3, Sizes{file_without_blocks}}, last{4, Sizes{block_bytes + 1}};
  for (FileVolume* volume : {&first, &second, &empty, &last}) REQUIRE(files.add(*volume));

  files.mark_done(2, 0);
  CHECK_FALSE(second.is_released());  // it waits for the first
  files.mark_done(0, block_bytes);
  files.mark_done(0, block_bytes);  // counts once
  CHECK_FALSE(first.is_released());
  files.mark_done(0, 0);
  CHECK(first.is_released());
  CHECK(second.is_released());
  CHECK(empty.is_released());
  CHECK_FALSE(last.is_released());
  CHECK(files.is_over(3));
  CHECK_FALSE(files.is_complete());
  files.mark_done(4, 0);
  files.mark_done(4, block_bytes);
  CHECK(last.is_released());
  CHECK(files.is_complete());

  FileVolume late{5, Sizes{file_without_blocks}};
  REQUIRE(files.add(late));
  CHECK(late.is_released());  // nothing is owed of it
}

TEST_CASE("the table holds so many volumes and no more", "[transfer][files]") {
  FileTable files;
  std::deque<FileVolume> volumes;
  for (std::uint32_t i = 0; i < FileTable::volumes_max; ++i)
    REQUIRE(files.add(volumes.emplace_back(i, Sizes{1})));
  FileVolume next{FileTable::volumes_max, Sizes{1}};
  CHECK_FALSE(files.add(next));
  for (std::uint32_t i = 0; i < FileTable::volumes_max; ++i) CHECK(files.find(i) == &volumes[i]);
  files.mark_done(0, 0);
  CHECK(files.add(next));
  CHECK(files.find(FileTable::volumes_max) == &next);
}

// Goal:   memory does not grow with the session.
// Method: 10^7 files pass in volumes of 4000, eight of them known at a time.
// Bounds: what is allocated after 10 volumes and after 2500 is the same.
TEST_CASE("ten million files pass in constant memory", "[transfer][files]") {
  constexpr std::uint32_t entries = 4000, volumes_total = 2500, ahead = 8;
  const Sizes sizes(entries + 1, 5);
  FileTable files;
  std::deque<std::unique_ptr<FileVolume>> owned;
  std::size_t bytes_early = 0;
  for (std::uint32_t volume = 0; volume < volumes_total + ahead; ++volume) {
    if (volume < volumes_total) {
      owned.push_back(std::make_unique<FileVolume>(volume * (entries + 1), sizes));
      REQUIRE(files.add(*owned.back()));
    }
    if (volume < ahead) continue;
    const std::uint32_t first = (volume - ahead) * (entries + 1);
    for (std::uint32_t file = first; file <= first + entries; ++file) files.mark_done(file, 0);
    while (!owned.empty() && owned.front()->is_released()) owned.pop_front();
    REQUIRE(owned.size() <= ahead);
    if (volume == 10) bytes_early = ::mallinfo2().uordblks;
    if (volume == volumes_total - 1) CHECK(::mallinfo2().uordblks <= bytes_early + 4096);
  }
  CHECK(owned.empty());
  CHECK(files.is_complete());
  CHECK(files.is_over(volumes_total * (entries + 1) - 1));
}

TEST_CASE("frames of a volume that is over are duplicates, those of a later one are dropped",
          "[transfer][files]") {
  ReceiverBench bench{{1000}};
  CHECK(bench.data(1, 0, 500) == Verdict::malformed);  // it overtook its volume
  CHECK(bench.receiver.last_received_at() == Instant{});
  FileVolume next{1, Sizes{500, file_without_blocks}};
  bench.receiver.add_files(next);
  CHECK(bench.data(0, 0, 1000) == Verdict::fresh);
  CHECK_FALSE(bench.receiver.is_complete());

  CHECK(bench.data(0, 0, 1000) == Verdict::duplicate);
  CHECK(bench.data(0, 77'777, 1000) == Verdict::duplicate);  // nobody knows its size any more
  CHECK(bench.receiver.totals().duplicate_bytes == 2000);
  bench.receiver.mark_skipped(0, 0);
  bench.receiver.mark_skipped(1, block_bytes);
  bench.receiver.mark_skipped(2, 0);
  bench.receiver.mark_skipped(3, 0);
  CHECK(bench.data(2, 0, 1) == Verdict::malformed);  // it has no blocks
  CHECK_FALSE(bench.receiver.is_complete());

  CHECK(bench.data(1, 0, 500) == Verdict::fresh);
  CHECK(next.is_released());
  CHECK(bench.receiver.is_complete());
  BlockRef block;
  for (const std::uint32_t file : {0U, 1U}) {
    REQUIRE(bench.receiver.pop_full(block));
    CHECK(block.file == file);
    CHECK(block.length == (file == 0 ? 1000 : 500));
  }
}

TEST_CASE("a Receiver that was given no files is complete until the first volume",
          "[transfer][files]") {
  ReceiverBench bench{{}};
  CHECK(bench.receiver.is_complete());
  CHECK(bench.data(0, 0, 1) == Verdict::malformed);
  FileVolume first{0, Sizes{file_without_blocks}}, second{1, Sizes{0}};
  bench.receiver.add_files(first);
  CHECK(bench.receiver.is_complete());
  bench.receiver.add_files(second);
  CHECK_FALSE(bench.receiver.is_complete());
  CHECK(bench.data(1, 0, 0) == Verdict::fresh);
  CHECK(bench.receiver.is_complete());
}

}  // namespace onehop::protocol
