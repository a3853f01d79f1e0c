// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Source to Sink through files, in one thread, with every kind of file I/O.
#include <sys/mman.h>

#include "tests/engine/sink/file_support.hpp"
#include "tests/support/needs.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {
std::vector<std::string> kinds() {
  std::vector<std::string> all = file_io_names();
  std::erase(all, "auto");  // one of the others
  std::erase_if(all, [](const std::string& name) {
    if (make_file_io(name).has_value()) return false;
    WARN("not tested, for it is not available here: " << name);
    return true;
  });
  return all;
}
}  // namespace

// Goal:   what arrives is what was sent, with its name, mode and time, and nothing else is left in
// the folder. Method: sizes around the block size and an empty file; blocks in order, out of order,
// digests before blocks. Bounds: exact.
TEST_CASE("C4 P6 files of every size arrive whole, in any order of blocks", "[engine][file]") {
  const std::string kind_before = io_kind_under_test();
  for (const std::string& kind : kinds()) {
    io_kind_under_test() = kind;
    for (const std::uint64_t seed : {0U, 1U, 2U}) {
      INFO("io " << kind << " reorder seed " << seed);
      const TempFolder from, to;
      const std::vector<std::size_t> sizes{
          0, 1, block_bytes - 1, block_bytes, block_bytes + 1, 40 * block_bytes + 77};
      std::vector<std::string> paths;
      for (const std::size_t size : sizes) {
        paths.push_back((from / ("file-" + std::to_string(size))).string());
        write_file(paths.back(), random_bytes(size, size));
        ::chmod(paths.back().c_str(), 04755);
      }
      const Outcome outcome = send(paths, to.path(), OnExist::ask, [&](Wire& wire) {
        wire.reorder_seed = seed;
        wire.is_digest_first = seed == 2;
      });
      CHECK_FALSE(outcome.sink_failure.has_value());
      CHECK(outcome.done.size() == sizes.size());
      CHECK(outcome.is_end_seen);
      CHECK(names_in(to.path()) == names_in(from.path()));
      for (const std::string& path : paths) {
        const fs::path arrived = to.path() / fs::path{path}.filename();
        CHECK(read_file(arrived) == read_file(path));
        struct stat was {
        }, is{};
        REQUIRE(::stat(path.c_str(), &was) == 0);
        REQUIRE(::stat(arrived.c_str(), &is) == 0);
        CHECK((is.st_mode & 07777) == (0755 & ~read_umask()));  // P6: no special bit survives
        CHECK(is.st_mtim.tv_nsec == was.st_mtim.tv_nsec);
        CHECK(is.st_mtim.tv_sec == was.st_mtim.tv_sec);
      }
    }
  }
  io_kind_under_test() = kind_before;
}

TEST_CASE("D1 a byte that flips after hashing never gets a final name", "[engine][file]") {
  const bool is_digest_first = GENERATE(false, true);
  const TempFolder from, to;
  write_file(from / "a", random_bytes(5 * block_bytes, 1));
  const Outcome outcome = send({(from / "a").string()}, to.path(), OnExist::ask, [&](Wire& wire) {
    wire.is_digest_first = is_digest_first;
    wire.on_carry = [](BlockRef& block) {
      if (block.offset == 3 * block_bytes) block.data[block.length / 2] ^= std::byte{1};
    };
  });
  REQUIRE(outcome.sink_failure.has_value());
  CHECK(outcome.sink_failure->failure == FileFailure::digest_mismatch);
  CHECK(outcome.done.empty());
  CHECK_FALSE(fs::exists(to / "a"));
}

TEST_CASE("D4 block buffers stay out of core dumps", "[engine][file]") {
  const BlockPool pool{4};
  char first[32];
  std::snprintf(first, sizeof first, "%lx-", reinterpret_cast<unsigned long>(pool.data(0)));
  std::ifstream maps{"/proc/self/smaps"};
  bool is_ours = false, is_checked = false;
  for (std::string line; std::getline(maps, line) && !is_checked;) {
    is_ours = is_ours || line.starts_with(first);
    if (!is_ours || !line.starts_with("VmFlags:")) continue;
    is_checked = true;
    CHECK(line.find(" dd") != std::string::npos);
  }
  CHECK(is_checked);  // the mapping has flags of its own, so it starts where the pool does
}

TEST_CASE("the pool lends the buffer that came back last", "[engine][file]") {
  BlockPool pool{3};
  std::uint32_t a = 0, b = 0, c = 0, none = 0;
  REQUIRE(pool.lend(a));
  REQUIRE(pool.lend(b));
  REQUIRE(pool.lend(c));
  CHECK_FALSE(pool.lend(none));
  CHECK(pool.data(b) - pool.data(a) == static_cast<std::ptrdiff_t>(block_bytes));
  pool.give_back(c);
  pool.give_back(a);
  std::uint32_t next = 9;
  REQUIRE(pool.lend(next));
  CHECK(next == a);
}

// Goal:   the engine core finds pages where it puts frames, and a session has none for blocks that
// it does not use. Method: a sink of 64 slots that gets one block, a stray one, in this slot or
// that.
TEST_CASE("a sink has pages for the blocks that are used and a few more", "[engine][file]") {
  ONEHOP_NEEDS(onehop::test::has_populate(), "memory comes without its pages here (MAP_POPULATE)");
  const TempFolder to;
  const std::uint64_t size = GENERATE(as<std::uint64_t>{}, 1, 40 * block_bytes);
  const bool is_small = size == 1;
  const Manifest manifest{.files = {{.name = "a", .size = size, .mode = 0644}}};
  SinkSettings settings = sink_settings(to.path(), manifest);
  settings.slots = 64;
  auto made = prepare_sink(manifest, settings);
  REQUIRE(made.has_value());
  const std::unique_ptr<PreparedSink> sink = std::move(made).value();
  FileRings rings{256};
  std::vector<BlockRef> lent;
  const auto turn = [&] {
    static_cast<void>(sink->turn(monotonic_now(), rings));
    for (BlockRef block; rings.to_engine.pop(block);) lent.push_back(block);
  };
  turn();
  REQUIRE(lent.size() == 64);
  CHECK(lent.back().slot == 0);  // the engine core takes it first
  std::byte* const pool = lent.back().data;
  const auto present = [pool] {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> resident(64 * block_bytes / page);
    REQUIRE(::mincore(pool, 64 * block_bytes, resident.data()) == 0);
    const auto end = std::ranges::find_if(resident, [](unsigned char r) { return (r & 1) == 0; });
    CHECK(std::all_of(end, resident.end(), [](unsigned char r) { return (r & 1) == 0; }));
    return static_cast<std::size_t>(end - resident.begin()) * page / block_bytes;
  };
  // A huge page may reach beyond what was asked for.
  const auto are_present = [&present](std::size_t slots) {
    const std::size_t seen = present();
    CHECK(seen >= slots);
    CHECK(seen < slots + 8);
  };
  are_present(8);
  const auto return_slot = [&](std::uint32_t slot) {
    REQUIRE(rings.from_engine.push(
        {.data = pool + slot * block_bytes, .file = 0, .length = 7, .slot = slot}));
    turn();
  };
  return_slot(0);
  are_present(is_small ? 8 : slots_ahead);
  if (is_small) return;  // no more blocks will come
  return_slot(0);
  are_present(slots_ahead);
  return_slot(9);
  are_present(32);
  return_slot(63);
  are_present(64);
}
