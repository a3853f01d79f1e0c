// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Blocks that no frame brings, as the receiver has them or they lie in a hole.
#include <catch2/catch.hpp>

#include "tests/engine/run/loop_bench.hpp"

using namespace onehop;
using namespace onehop::run;

TEST_CASE("skipped blocks need not be sent, and the file thread learns their digests") {
  Pair pair{{1'000'000}};
  for (std::uint64_t offset = 0; offset < 1'000'000; offset += block_bytes)
    REQUIRE(pair.receiver_side.commands.push(
        {.kind = CommandKind::skip_block,
         .block = {.offset = offset, .kind = BlockKind::skipped}}));
  (void)pair.receiver->turn(pair.now);
  CHECK(pair.receiver->receiver().is_complete());
  pair.drain();
  // Without them the tree has holes, and a resumed file would never be complete.
  REQUIRE(pair.receiver_messages.size() == 4);
  for (const BlockRef& message : pair.receiver_messages) CHECK(message.kind == BlockKind::skipped);
}

TEST_CASE("holes need not be sent, also where some of their blocks came") {
  constexpr std::uint64_t size = 4 * block_bytes + 5;
  Pair pair{{size, 10}};
  const auto say = [&pair](const BlockRef& message) {
    REQUIRE(pair.receiver_side.commands.push({.kind = CommandKind::skip_block, .block = message}));
    (void)pair.receiver->turn(pair.now);
  };
  say({.offset = 2 * block_bytes, .kind = BlockKind::skipped});
  say({.offset = 3 * block_bytes, .kind = BlockKind::skipped});
  say({.offset = 4 * block_bytes, .length = 5, .kind = BlockKind::hole});
  say({.file = 1, .length = 10, .kind = BlockKind::hole});
  CHECK_FALSE(pair.receiver->receiver().is_complete());
  // The first two blocks are new. With them the volume is over before the run is at its end.
  say({.length = 4 * block_bytes, .kind = BlockKind::hole});
  CHECK(pair.receiver->receiver().is_complete());
  pair.drain();
  REQUIRE(pair.receiver_messages.size() == 5);
  CHECK(pair.receiver_messages[4].kind == BlockKind::hole);
  CHECK(pair.receiver_messages[4].length == 4 * block_bytes);
}
