// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A list that comes volume by volume, through both ends.
#include <atomic>
#include <thread>

#include "tests/engine/sink/tree_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

using Files = std::vector<std::uint32_t>;

/// volumes_of cuts a list into volumes of `entries_max`. A folder comes behind what it holds.
std::vector<SourceFiles> volumes_of(SourceFiles all, std::size_t entries_max) {
  std::vector<std::size_t> order(all.files.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) {
    const ManifestEntry& entry = all.manifest.files[i];
    return entry.is_folder() ? entry.name + "/\xFF" : entry.name;
  });
  std::vector<SourceFiles> volumes;
  for (const std::size_t i : order) {
    if (volumes.empty() || volumes.back().files.size() == entries_max)
      volumes.emplace_back().roots = all.roots;
    SourceFiles& volume = volumes.back();
    volume.manifest.files.push_back(all.manifest.files[i]);
    volume.places.push_back(all.places[i]);
    volume.files.push_back(std::move(all.files[i]));
  }
  return volumes;
}

/// Session: both ends of one, to which volumes are added as it goes.
struct Session {
  explicit Session(const fs::path& to, OnExist on_exist = OnExist::resume)
      : sink{[&] {
          auto made = prepare_sink(SinkSettings{.folder = to.string(), .on_exist = on_exist});
          if (made.has_error()) FAIL(made.error().message());
          return std::move(made).value();
        }()} {}

  /// add gives the next volume to both ends; false: the Sink refuses it.
  bool add(SourceFiles files, bool is_last) {
    sink->approve(files.manifest);
    if (!sink->add(files.manifest, is_last)) return false;
    SourceVolume volume = answered_volume(std::move(files), *sink);
    volume.is_last = is_last;
    source.add(std::move(volume));
    return true;
  }
  void add_all(std::vector<SourceFiles> volumes) {
    for (std::size_t i = 0; i < volumes.size(); ++i)
      REQUIRE(add(std::move(volumes[i]), i + 1 == volumes.size()));
  }

  std::unique_ptr<PreparedSink> sink;
  Source source{{.slots = 16, .direct_io = direct_io_under_test()}, make_io()};
  Wire wire{&source, *sink};
};

}  // namespace

// Goal:   a tree in volumes arrives as it is, modes and times of folders too, whose entries come
// volumes behind what is in them. Method: sizes of volumes from one entry to all; volumes come
// all at once or one by one as others are under way; blocks in order and not. Bounds: exact.
TEST_CASE("C4 a tree in volumes arrives whole, with the times of its folders", "[engine][file]") {
  const std::size_t entries_max = GENERATE(1U, 3U, 7U, 50U, 1000U);
  const bool is_lazy = GENERATE(false, true);
  const std::uint64_t seed = entries_max % 2 == 0 ? 5 : 0;
  CAPTURE(entries_max, is_lazy);
  const Tree tree{entries_max};
  const TempFolder to{in_memory()};
  std::vector<SourceFiles> volumes = volumes_of(tree.list(), entries_max);
  Session session{to.path(), OnExist::ask};
  session.wire.reorder_seed = seed;
  Files expected;
  std::uint32_t first_file = 0;
  for (const SourceFiles& volume : volumes) {
    for (std::uint32_t i = 0; i < volume.files.size(); ++i) expected.push_back(first_file + i);
    first_file += static_cast<std::uint32_t>(volume.files.size()) + 1;
  }
  std::size_t next = 0, turns = 0;
  if (!is_lazy) {
    session.add_all(std::move(volumes));
  } else {
    session.wire.on_turn = [&] {
      if (next == volumes.size() || turns++ % 3 != 0) return;
      const bool is_last = next + 1 == volumes.size();
      REQUIRE(session.add(std::move(volumes[next++]), is_last));
    };
  }
  Outcome outcome = session.wire.run();
  CHECK(session.sink->is_over());
  session.sink->close();
  CHECK_FALSE(outcome.sink_failure.has_value());
  std::ranges::sort(outcome.done);
  CHECK(outcome.done == expected);
  check_equal(tree, to.path());
}

// Goal:   a batch that is not full does not wait for its second where nothing can come before it is
// through: a sender has so many volumes under way, and offers the next when one has ended.
// Method: the clock stands still; a volume comes when all before it have ended. Bounds: exact.
TEST_CASE("C4 a volume that is whole ends before another comes", "[engine][file]") {
  const Tree tree{7};
  const TempFolder to{in_memory()};
  std::vector<SourceFiles> volumes = volumes_of(tree.list(), 40);
  REQUIRE(volumes.size() > 2);
  Session session{to.path(), OnExist::ask};
  session.wire.clock = [now = monotonic_now()] { return now; };
  std::size_t next = 0, entries = 0;
  session.wire.on_turn = [&] {
    if (next == volumes.size() || session.wire.outcome().done.size() < entries) return;
    entries += volumes[next].files.size();
    const bool is_last = next + 1 == volumes.size();
    REQUIRE(session.add(std::move(volumes[next++]), is_last));
  };
  const Outcome outcome = session.wire.run();
  CHECK(outcome.done.size() == entries);
  CHECK(outcome.packed > 0);
  CHECK(session.sink->is_over());
  session.sink->close();
  check_equal(tree, to.path());
}

// Goal:   a session that is killed between or within volumes goes on, and what came is not sent
// again. Method: the wire is cut after so many blocks, nothing is closed; time and again.
// Bounds: exact content and nothing left beside it; each session carries less than all.
TEST_CASE("C1 C2 a session that was killed in some volume goes on there", "[engine][file]") {
  const std::size_t entries_max = GENERATE(3U, 40U);
  const std::size_t step = GENERATE(1U, 5U, 20U);
  const auto on_exist = GENERATE(OnExist::resume, OnExist::rename);
  CAPTURE(entries_max, step);
  const Tree tree{29};
  write_file(tree.folder / "d3" / "large", random_bytes(9 * block_bytes + 7, 1));
  write_file(tree.folder / "zz", random_bytes(5 * block_bytes, 2));
  const TempFolder to{in_memory()};
  for (std::size_t killed = 0; killed < 3; ++killed) {
    Session session{to.path(), on_exist};
    session.add_all(volumes_of(tree.list(), entries_max));
    std::size_t carried = 0;
    session.wire.is_cut = [&](const BlockRef&) { return carried++ == step; };
    static_cast<void>(session.wire.run());
  }
  Session last{to.path(), on_exist};
  last.add_all(volumes_of(tree.list(), entries_max));
  const Outcome outcome = last.wire.run();
  last.sink->close();
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK(last.sink->is_over());
  check_equal(tree, to.path());
  if (step > 1) CHECK(outcome.blocks_skipped > 0);
}

TEST_CASE(
    "C2 volumes that ended before an abort are in place, and are compared by the next session",
    "[engine][file]") {
  const Tree tree{31};
  const TempFolder to{in_memory()};
  Files done;
  {
    Session session{to.path()};
    session.add_all(volumes_of(tree.list(), 20));
    std::size_t carried = 0;
    session.wire.is_cut = [&](const BlockRef&) {
      if (carried++ < 20) return false;
      session.wire.abort();
      return true;
    };
    done = session.wire.run().done;
  }
  CHECK(done.size() >= 20);  // the first volume at least
  CHECK_FALSE(fs::exists(to / ".onehop-stage"));
  Session session{to.path()};
  session.add_all(volumes_of(tree.list(), 20));
  const Outcome outcome = session.wire.run();
  session.sink->close();
  CHECK(outcome.blocks_skipped > 0);
  check_equal(tree, to.path());
}

TEST_CASE("volumes may be empty, the first and the last too", "[engine][file]") {
  const TempFolder from, to;
  write_file(from / "f", "content");
  const auto file = [&] { return open_files({(from / "f").string()}); };
  Session session{to.path()};
  SECTION("all of them") {
    session.add({}, false);
    CHECK_FALSE(session.sink->is_over());
    session.add({}, true);
    CHECK(session.wire.run().done.empty());
    CHECK(names_in(to.path()).empty());
  }
  SECTION("all but one") {
    session.add({}, false);
    session.add(file(), false);
    session.add({}, false);
    session.add({}, true);
    CHECK(session.wire.run().done == Files{1});
    CHECK(read_file(to / "f") == "content");
  }
  CHECK(session.sink->is_over());
  session.sink->close();
}

// Goal:   names may all be there before the root over them; the volume waits for it.
TEST_CASE("D1 a volume with a pack ends only when the root over the pack was checked",
          "[engine][file]") {
  const Tree tree{37};
  const TempFolder to{in_memory()};
  std::vector<SourceFiles> volumes = volumes_of(tree.list(), 60);
  const std::size_t entries = tree.list().files.size();
  Session session{to.path()};
  session.add_all(std::move(volumes));
  const std::uint32_t pack = 60;  // of the first volume
  std::optional<RootRead> root;
  session.wire.on_root = [&](const RootRead& message) {
    if (message.file == pack) root = message;
    return message.file != pack;
  };
  Outcome outcome = session.wire.run();
  REQUIRE(root.has_value());
  CHECK_FALSE(session.sink->is_over());
  CHECK(outcome.done.size() < entries);
  CHECK(std::ranges::none_of(outcome.done, [](std::uint32_t file) { return file == pack; }));
  const bool is_right = GENERATE(true, false);
  if (!is_right) root->root[0] ^= std::byte{1};
  session.wire.tell(AnnouncedRoot{root->file, root->root});
  outcome = session.wire.run();
  CHECK(outcome.sink_failure.has_value() != is_right);
  CHECK(session.sink->is_over());
  session.sink->close();
  if (!is_right) return;
  CHECK(outcome.done.size() == entries);
  check_equal(tree, to.path());
}

// Goal:   a folder gets its time when all in it are in place, those of earlier volumes too.
// Method: of a large file in the first volume the root comes when nothing else is left to do; its
// folder is in the second. Bounds: exact.
TEST_CASE("C4 a folder waits for files of earlier volumes", "[engine][file]") {
  const Tree tree{43};
  const TempFolder to{in_memory()};
  std::vector<SourceFiles> volumes = volumes_of(tree.list(), 12);
  const std::uint32_t late = 3;
  REQUIRE(volumes[0].manifest.files[late].name == "d0/f11");
  REQUIRE_FALSE(is_packable(volumes[0].manifest.files[late]));
  REQUIRE(std::ranges::count(volumes[1].manifest.files, "d0", &ManifestEntry::name) == 1);
  Session session{to.path()};
  session.add_all(std::move(volumes));
  std::optional<RootRead> root;
  session.wire.on_root = [&](const RootRead& message) {
    if (message.file == late) root = message;
    return message.file != late;
  };
  (void)session.wire.run();
  REQUIRE(root.has_value());
  session.wire.tell(AnnouncedRoot{root->file, root->root});
  (void)session.wire.run();
  CHECK(session.sink->is_over());
  session.sink->close();
  check_equal(tree, to.path());
}

// Goal:   volumes are prepared while the file threads work on earlier ones.
// Method: one thread prepares and adds, this one turns both ends. Made for the thread sanitizer.
TEST_CASE("volumes are prepared on another thread while files arrive", "[engine][file]") {
  const auto on_exist = GENERATE(OnExist::ask, OnExist::rename);
  const Tree tree{41};
  const TempFolder to{in_memory()};
  const bool is_resumed = on_exist == OnExist::rename;
  if (is_resumed) {  // so that journals are read and written at once
    Session session{to.path(), on_exist};
    session.add_all(volumes_of(tree.list(), 10));
    std::size_t carried = 0;
    session.wire.is_cut = [&](const BlockRef&) { return carried++ == 25; };
    static_cast<void>(session.wire.run());
  }
  Session session{to.path(), on_exist};
  std::vector<SourceFiles> volumes = volumes_of(tree.list(), 5);
  std::atomic<int> refused{0};
  std::thread preparer{[&] {
    for (std::size_t i = 0; i < volumes.size(); ++i)
      if (!session.add(std::move(volumes[i]), i + 1 == volumes.size())) ++refused;
  }};
  const Outcome outcome = session.wire.run();
  preparer.join();
  session.sink->close();
  CHECK(refused == 0);
  CHECK_FALSE(outcome.sink_failure.has_value());
  check_equal(tree, to.path());
}
