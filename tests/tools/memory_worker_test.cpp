// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a source and a sink without a disk speak to the engine as those with one do, and see a
// wrong byte. Method: blocks are carried from one to the other as the engine and the session would
// carry them.
#include <catch2/catch.hpp>

#include <cstring>
#include <deque>
#include <functional>

#include "engine/base/time.hpp"
#include "tools/labs/bench/parts/memory_sink.hpp"
#include "tools/labs/bench/parts/memory_source.hpp"

namespace onehop::bench {

using namespace onehop::disk;
using namespace onehop::list;

namespace {

struct Carried {
  std::uint64_t bytes = 0, files_done = 0;
  FileFailure failure = FileFailure::none;
  bool is_source_over = false, is_sink_over = false;
};

/// carry moves everything over; `touch` sees each block in the sink's buffer first. The block's
/// digest goes before it when asked.
Carried carry(const Manifest& manifest, std::optional<crypto::DigestKind> kind,
              bool is_digest_first, const std::function<void(BlockRef&)>& touch = {}) {
  MemorySource source{manifest, {.slots = 8, .digest_kind = kind}};
  MemorySink sink{manifest, {.slots = 8, .digest_kind = kind}};
  FileRings source_rings{64}, sink_rings{64};
  std::deque<BlockRef> free;
  Carried carried;
  for (int i = 0; i < 10'000 && !(source.is_over() && sink.is_over()); ++i) {
    static_cast<void>(source.turn(monotonic_now(), source_rings));
    static_cast<void>(sink.turn(monotonic_now(), sink_rings));
    BlockRef message;
    while (sink_rings.to_engine.pop(message)) free.push_back(message);
    for (FileEvent event; sink_rings.events.pop(event);) {
      if (std::holds_alternative<FileFinished>(event)) ++carried.files_done;
      if (const auto* failed = std::get_if<FileFailed>(&event)) carried.failure = failed->failure;
    }
    for (FileEvent event; source_rings.events.pop(event);) {
      const auto& read = std::get<RootRead>(event);
      REQUIRE(sink_rings.commands.push(AnnouncedRoot{read.file, read.root}));
    }
    while (!free.empty() && source_rings.to_engine.pop(message)) {
      if (message.kind != BlockKind::block) continue;
      BlockRef target = message;
      target.data = free.front().data;
      target.slot = free.front().slot;
      free.pop_front();
      std::memcpy(target.data, message.data, message.length);
      if (touch) touch(target);
      carried.bytes += message.length;
      REQUIRE(
          sink_rings.commands.push(AnnouncedDigest{message.file, message.offset, message.digest}));
      if (is_digest_first) static_cast<void>(sink.turn(monotonic_now(), sink_rings));
      REQUIRE(sink_rings.from_engine.push(target));
      REQUIRE(source_rings.from_engine.push({.data = message.data, .slot = message.slot}));
    }
  }
  carried.is_source_over = source.is_over();
  carried.is_sink_over = sink.is_over();
  return carried;
}

Manifest manifest_of(std::vector<std::uint64_t> sizes) {
  Manifest manifest;
  for (const std::uint64_t size : sizes)
    manifest.files.push_back(
        {.name = std::string{"f"}.append(std::to_string(manifest.files.size())), .size = size});
  return manifest;
}

}  // namespace

TEST_CASE("files of memory arrive whole, verified or not digested at all",
          "[engine][file][memory]") {
  const auto kind =
      GENERATE(std::optional<crypto::DigestKind>{}, std::optional{crypto::DigestKind::xxh3},
               std::optional{crypto::DigestKind::sha256});
  const bool is_digest_first = GENERATE(false, true);
  const Manifest manifest = manifest_of({40 * std::uint64_t{block_bytes} + 17, 0, 5, block_bytes});
  const Carried carried = carry(manifest, kind, is_digest_first);
  CHECK(carried.is_source_over);
  CHECK(carried.is_sink_over);
  CHECK(carried.failure == FileFailure::none);
  CHECK(carried.files_done == 4);
  CHECK(carried.bytes == total_bytes(manifest));
}

TEST_CASE("a memory sink that digests sees one wrong bit", "[engine][file][memory]") {
  const auto flip = [](BlockRef& block) {
    if (block.offset == 3 * std::uint64_t{block_bytes}) block.data[1000] ^= std::byte{1};
  };
  const Manifest manifest = manifest_of({10 * std::uint64_t{block_bytes}});
  CHECK(carry(manifest, crypto::DigestKind::xxh3, false, flip).failure ==
        FileFailure::digest_mismatch);
  CHECK(carry(manifest, crypto::DigestKind::sha256, true, flip).failure ==
        FileFailure::digest_mismatch);
}

}  // namespace onehop::bench
