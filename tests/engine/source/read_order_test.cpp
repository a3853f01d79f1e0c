// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   what is new of a volume is read first, what is held after it, and each block once.
// Method: volumes drawn from a seed, whose pieces are put together. Bounds: few runs are passed
// over before what they hold is read.
#include "engine/source/read_order.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>
#include <utility>

using namespace onehop;
using namespace onehop::list;
using namespace onehop::source;

namespace {

SourceVolume volume_of(const std::vector<std::uint64_t>& blocks, const Held& held,
                       std::vector<FileAction> actions = {}) {
  SourceVolume volume;
  volume.files->files.resize(blocks.size());
  for (const std::uint64_t count : blocks)
    volume.files->manifest.files.push_back({.name = "f", .size = count * block_bytes});
  volume.answer =
      std::make_shared<const Answer>(Answer{.actions = std::move(actions), .held = held});
  return volume;
}

std::vector<ReadOrder::Piece> pieces_of(const SourceVolume& volume) {
  ReadOrder order{volume};
  std::vector<ReadOrder::Piece> pieces;
  while (const auto piece = order.next()) pieces.push_back(*piece);
  CHECK_FALSE(order.next().has_value());
  return pieces;
}

}  // namespace

TEST_CASE("what is new is read before what the receiver holds", "[engine][file]") {
  const SourceVolume volume = volume_of({3, 0, 10, 4, 2}, {{}, {}, {{0, 4}, {6, 7}}, {{0, 4}}},
                                        {FileAction::send, FileAction::send, FileAction::resume,
                                         FileAction::resume, FileAction::keep});
  const auto pieces = pieces_of(volume);
  const std::vector<std::tuple<std::size_t, BlockRun, bool>> wanted{
      {0, {0, 3}, false}, {1, {0, 1}, false}, {2, {4, 6}, false}, {2, {7, 10}, false},
      {2, {0, 4}, true},  {2, {6, 7}, true},  {3, {0, 4}, true}};
  REQUIRE(pieces.size() == wanted.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    CAPTURE(i);
    CHECK(std::tuple{pieces[i].entry, pieces[i].run, pieces[i].is_held} == wanted[i]);
  }
  CHECK(pieces_of(volume_of({}, {})).empty());
}

TEST_CASE("each block of a volume is read once, and few held ones are passed over",
          "[engine][file]") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random{seed};
    std::vector<std::uint64_t> blocks(1 + random() % 2000);
    Held held(blocks.size());
    for (std::size_t entry = 0; entry < blocks.size(); ++entry) {
      blocks[entry] = 1 + random() % 40;
      for (std::uint64_t first = random() % 41; first < blocks[entry];) {
        const std::uint64_t end = first + 1 + random() % (blocks[entry] - first);
        held[entry].push_back({first, end});
        first = end + 1 + random() % 20;
      }
    }
    std::map<std::pair<std::size_t, std::uint64_t>, bool> read;
    std::set<std::size_t> is_new_read;
    std::size_t passed = 0, passed_most = 0;
    for (const ReadOrder::Piece& piece : pieces_of(volume_of(blocks, held))) {
      for (std::uint64_t block = piece.run.first; block < piece.run.end; ++block)
        CHECK(read.emplace(std::pair{piece.entry, block}, piece.is_held).second);
      if (piece.is_held)
        passed = 0;
      else if (is_new_read.insert(piece.entry).second)
        passed_most = std::max(passed_most, passed += held[piece.entry].size());
    }
    std::uint64_t total = 0;
    for (std::size_t entry = 0; entry < blocks.size(); ++entry) {
      total += blocks[entry];
      for (const BlockRun& run : held[entry])
        for (std::uint64_t block = run.first; block < run.end; ++block)
          CHECK(read.at({entry, block}));
    }
    CHECK(read.size() == total);
    CHECK(passed_most <= ReadOrder::passed_max);
  }
}
