// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A source that changes while it is read, and the threads that run both ends.

#include "engine/disk/thread/file_thread.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

/// Sends 60 blocks, and does `change` to the source when block 20 is carried.
Outcome send_while(const std::string& path, const fs::path& to,
                   const std::function<void()>& change) {
  write_file(path, random_bytes(60 * block_bytes + 3, 1));
  bool is_changed = false;
  return send({path}, to, OnExist::ask, [&](Wire& wire) {
    wire.on_carry = [&](BlockRef& block) {
      if (!is_changed && block.offset >= 20 * block_bytes) change();
      is_changed = is_changed || block.offset >= 20 * block_bytes;
    };
  });
}

void overwrite_at(const std::string& path, std::size_t offset) {
  std::fstream file{path, std::ios::binary | std::ios::in | std::ios::out};
  file.seekp(static_cast<std::streamoff>(offset));
  file.put('x').put('y');
}

}  // namespace

// Goal:   a file that changes on the way is never complete at the peer, whatever changed and
// whether or not the bytes
//         that had been sent are concerned.
// Bounds: a typed failure at the source; no final name at the sink.
TEST_CASE("C3 a source that changes while it is sent gets no final name", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  const auto failure = [&](const std::function<void()>& change) {
    const Outcome outcome = send_while(path, to.path(), change);
    CHECK(outcome.done.empty());
    CHECK_FALSE(outcome.is_end_seen);
    CHECK_FALSE(fs::exists(to / "f"));
    return outcome.source_failure ? outcome.source_failure->failure : FileFailure::none;
  };
  SECTION("bytes already sent") {
    CHECK(failure([&] { overwrite_at(path, 0); }) == FileFailure::source_changed);
  }
  SECTION("bytes not yet sent") {
    CHECK(failure([&] { overwrite_at(path, 59 * block_bytes); }) == FileFailure::source_changed);
  }
  SECTION("truncated") {
    CHECK(failure([&] { fs::resize_file(path, 30 * block_bytes + 1); }) ==
          FileFailure::source_changed);
  }
  SECTION("grown") {
    CHECK(failure([&] { fs::resize_file(path, 70 * block_bytes); }) == FileFailure::source_changed);
  }
  SECTION("deleted") {
    CHECK(failure([&] { fs::remove(path); }) == FileFailure::source_vanished);
  }
  SECTION("replaced by a rename") {
    CHECK(failure([&] {
            write_file(from / "new", "new");
            fs::rename(from / "new", path);
          }) == FileFailure::source_vanished);
  }
  SECTION("changed, and its time set back") {
    CHECK(failure([&] {
            struct stat status {};
            REQUIRE(::stat(path.c_str(), &status) == 0);
            overwrite_at(path, 0);
            const timespec times[2] = {status.st_atim, status.st_mtim};
            REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
          }) == FileFailure::source_changed);
  }
}

TEST_CASE("C3 a file that is opened late is checked against its fence", "[engine][file]") {
  const TempFolder from, to;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < open_files_kept + 3; ++i) {
    paths.push_back((from / std::to_string(i)).string());
    write_file(paths.back(), "x");
  }
  SECTION("unchanged") {
    const Outcome outcome = send(paths, to.path());
    CHECK(outcome.done.size() == paths.size());
    CHECK(names_in(to.path()).size() == paths.size());
  }
  const auto failure_after = [&](const std::function<void(const std::string&)>& change) {
    SourceFiles files = open_files(paths);
    change(paths.back());
    Source source{{.slots = 16}, make_io()};
    source.add(only_volume(std::move(files)));
    FileRings rings{2048};
    FileFailure failure = FileFailure::none;
    for (int i = 0; i < 20'000 && !source.is_over(); ++i) {
      if (source.turn(monotonic_now(), rings) == 0) ::usleep(100);
      for (BlockRef block; rings.to_engine.pop(block);)
        if (block.kind == BlockKind::block) REQUIRE(rings.from_engine.push(block));
      for (FileEvent event; rings.events.pop(event);)
        if (const auto* failed = std::get_if<FileFailed>(&event)) failure = failed->failure;
    }
    return failure;
  };
  SECTION("deleted") {
    CHECK(failure_after([](const std::string& path) { fs::remove(path); }) ==
          FileFailure::source_vanished);
  }
  SECTION("replaced by a link") {
    CHECK(failure_after([](const std::string& path) {
            fs::remove(path);
            fs::create_symlink("/etc/passwd", path);
          }) == FileFailure::source_changed);
  }
  SECTION("rewritten") {
    CHECK(failure_after([](const std::string& path) { write_file(path, "yy"); }) ==
          FileFailure::source_changed);
  }
}

TEST_CASE("C3 what a file may have become is looked at again, and a disk's error is not",
          "[engine][file]") {
  for (const int other : {EACCES, ENOTDIR, ESTALE, ELOOP, EISDIR, EINVAL, 0})
    CHECK(failure_of(other) == FileFailure::source_changed);
  CHECK(failure_of(ENOENT) == FileFailure::source_vanished);
  CHECK(failure_of(EIO) == FileFailure::read_error);
}

// Goal:   read-ahead doubles before the engine starves, and shrinks again to what one visit's pause
// needs.
TEST_CASE("read-ahead holds what lasts until the next visit", "[engine][file]") {
  ReadAhead ahead;
  for (int i = 0; i < 100; ++i)
    ahead.on_fill(ahead.blocks() - 2);  // two blocks are taken between visits
  CHECK(ahead.blocks() == ReadAhead::blocks_min);
  for (int i = 0; i < 5; ++i)
    ahead.on_fill(ahead.blocks() < 16 ? 0 : ahead.blocks() - 10);  // ten are
  CHECK(ahead.blocks() == 16);
  ahead.on_fill(1);
  CHECK(ahead.blocks() == ReadAhead::blocks_max);
  for (int i = 0; i < 10'000; ++i) ahead.on_fill(ahead.blocks() - 4);  // four are
  CHECK(ahead.blocks() == 6);
}

TEST_CASE("the nap follows the load and stays within its bounds", "[engine][file]") {
  Nanos nap = nap_min;
  constexpr Nanos nap_max = nap_max_writing;
  // 100 Mbit/s: a block comes every 21 ms, and a nap of twice the longest finds one at most.
  for (int i = 0; i < 10; ++i) nap = next_nap(nap, i % 3 == 0 ? 4 : 0, nap_max);
  CHECK(nap == nap_max * 2);
  // 600 Mbit/s: a block comes every 3.5 ms, four messages each: the longest nap finds 4 to 8 and
  // stays, twice as long at most.
  for (int i = 0; i < 100; ++i) {
    nap = next_nap(nap, static_cast<std::size_t>(4 + i % 5), nap_max);
    CHECK((nap == nap_max || (nap == nap_max * 2 && i % 5 == 0)));
  }
  for (int i = 0; i < 10; ++i) nap = next_nap(nap, 96, nap_max);
  CHECK(nap == nap_min);
  // 8 Gbit/s: four blocks a millisecond. The nap settles where it finds two to four blocks.
  for (int i = 0; i < 100; ++i)
    nap = next_nap(nap, static_cast<std::size_t>(16 * nap / 1ms), nap_max);
  CHECK(nap >= 250us);
  CHECK(nap <= 1ms);
  CHECK(next_nap(nap_max, 0, nap_max_at_end) == nap_max_at_end);
}

// Goal:   both threads carry files through their rings with nobody waking them, and end when they
// are stopped. Method: this thread plays the engine: it copies blocks between the two pairs of
// rings. Bounds: exact content. The number of naps is bounded by the time that has gone by and the
// shortest nap.
TEST_CASE("source and sink threads carry files to their end", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(200 * block_bytes + 1, 5));
  SourceFiles files = open_files({path});
  const Manifest manifest = files.manifest;
  FileRings source_rings{256}, sink_rings{256};
  auto source = std::make_unique<Source>(SourceOptions{}, make_io());
  source->add(only_volume(std::move(files)));
  FileThread reader{std::move(source), source_rings};
  SinkSettings options = sink_settings(to.path(), manifest);
  options.slots = receiver_slots;
  FileThread writer{make_sink(manifest, options)->take(), sink_rings};
  const Instant begin = monotonic_now();
  REQUIRE(reader.start());
  REQUIRE(writer.start());

  std::deque<BlockRef> free;
  BlockRef carried;
  bool is_done = false;
  while (!is_done && monotonic_now() - begin < 60s) {
    bool is_idle = true;
    for (BlockRef block; sink_rings.to_engine.pop(block); is_idle = false) free.push_back(block);
    for (FileEvent event; sink_rings.events.pop(event); is_idle = false) {
      REQUIRE_FALSE(std::holds_alternative<FileFailed>(event));
      is_done = is_done || std::holds_alternative<FileFinished>(event);
    }
    for (FileEvent event; source_rings.events.pop(event); is_idle = false) {
      const auto& read = std::get<RootRead>(event);
      REQUIRE(sink_rings.commands.push(AnnouncedRoot{read.file, read.root}));
    }
    for (; !free.empty() && source_rings.to_engine.pop(carried); is_idle = false) {
      if (carried.kind != BlockKind::block) continue;
      BlockRef target = free.front();
      free.pop_front();
      std::memcpy(target.data, carried.data, carried.length);
      target.offset = carried.offset;
      target.length = carried.length;
      REQUIRE(sink_rings.from_engine.push(target));
      REQUIRE(source_rings.from_engine.push(carried));
      REQUIRE(
          sink_rings.commands.push(AnnouncedDigest{carried.file, carried.offset, carried.digest}));
    }
    if (is_idle) ::usleep(100);
  }
  reader.request_stop();
  writer.request_stop();
  reader.join();
  writer.join();
  CHECK(is_done);
  CHECK(read_file(to / "f") == read_file(path));
}

TEST_CASE("a thread that is stopped in the middle leaves what can be resumed", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(40 * block_bytes, 6));
  SourceFiles files = open_files({path});
  const Manifest manifest = files.manifest;
  FileRings rings{256};
  {
    FileThread writer{make_sink(manifest, sink_settings(to.path(), manifest))->take(), rings};
    REQUIRE(writer.start());
    const std::string data = read_file(path);
    for (std::uint64_t index = 0; index < 5; ++index) {
      BlockRef block;
      while (!rings.to_engine.pop(block)) ::usleep(100);
      block.offset = index * block_bytes;
      block.length = block_bytes;
      std::memcpy(block.data, data.data() + block.offset, block_bytes);
      const Digest digest =
          crypto::block_digest(crypto::DigestKind::xxh3, {block.data, block_bytes});
      REQUIRE(rings.from_engine.push(block));
      REQUIRE(rings.commands.push(AnnouncedDigest{0, block.offset, digest}));
    }
    while (!rings.from_engine.is_empty() || !rings.commands.is_empty()) ::usleep(100);
  }
  CHECK(send({path}, to.path()).blocks_skipped == 5);
}

// Goal:   files that the peer has are compared as fast as they are read, whenever the engine looks.
// Method: a ring that nobody empties; all files are held. Bounds: two messages a file, and the
// end.
TEST_CASE("C5 files that are only compared do not wait for the engine", "[engine][file]") {
  const TempFolder from;
  std::vector<std::string> paths;
  Held held;
  FileRings rings{1024};
  for (std::size_t i = 0; i < 300; ++i) {
    const std::string content = std::to_string(i);
    paths.push_back((from / content).string());
    write_file(paths.back(), content);
    held.push_back({{0, 1}});
    const Digest tag = crypto::ContentMac{{}}.tag(std::as_bytes(std::span{content}));
    REQUIRE(rings.commands.push(HeldBlock{static_cast<std::uint32_t>(i), 0, tag}));
  }
  Source source{{.slots = 16}, make_io()};
  SourceVolume volume = only_volume(open_files(paths));
  volume.answer = std::make_shared<const Answer>(Answer{.held = std::move(held)});
  source.add(std::move(volume));
  for (int i = 0; i < 20'000 && !source.is_over(); ++i)
    if (source.turn(monotonic_now(), rings) == 0) ::usleep(100);
  CHECK(source.is_over());
  CHECK(rings.to_engine.size() == paths.size() + 1);
  CHECK(rings.events.size() == paths.size());
}
