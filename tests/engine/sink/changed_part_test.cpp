// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Parts whose file has changed since, and many parts of one file.
#include "engine/disk/own_names.hpp"
#include "tests/engine/sink/interrupt_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

constexpr std::size_t part_blocks = 24;

}  // namespace

// Goal:   what a changed file still has in common with the part is not sent again, and no part but
//         one is ever there. Method: time, mode, length and bytes change between an interrupt and
//         the next session, which is interrupted as well or is not. Bounds: exact.
TEST_CASE("C5 a source that changed between sessions goes on where its part_blocks are the same",
          "[engine][file]") {
  const bool is_interrupted_again = GENERATE(true, false);
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  const std::string data = random_bytes(part_blocks * block_bytes - 5, 11);
  write_file(path, data);
  interrupt_after(path, to.path(), 12);
  std::size_t same = 12;
  SECTION("its time") {
    const timespec times[2] = {{1, 0}, {1'000'000'000, 7}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  }
  SECTION("its mode") { fs::permissions(path, static_cast<fs::perms>(0600)); }
  SECTION("it grew") { append(path, random_bytes(3 * block_bytes, 12)); }
  SECTION("it was cut within what was there") {
    fs::resize_file(path, 7 * block_bytes + 100);
    same = 7;
  }
  SECTION("it was cut to a small file") {
    fs::resize_file(path, 1000);
    same = 0;
  }
  SECTION("some of its bytes") {
    std::fstream file{path, std::ios::binary | std::ios::in | std::ios::out};
    file.seekp(5 * block_bytes + 17);
    file.put('!').put('?');
    same = 11;
  }
  SECTION("all of its bytes") {
    write_file(path, random_bytes(part_blocks * block_bytes, 13));
    same = 0;
  }
  CHECK(names_in(to.path()) == part_and_journal("f"));
  if (is_interrupted_again && fs::file_size(path) > block_bytes * 10) {
    interrupt_after(path, to.path(), 2);
    CHECK(names_in(to.path()) == part_and_journal("f"));
    same += 2;
  }
  const Outcome outcome = send({path}, to.path());
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK(outcome.blocks_skipped == same);
  CHECK(read_file(to / "f") == read_file(path));
  CHECK(names_in(to.path()) == std::vector<std::string>{"f"});
}

TEST_CASE("C5 a journal of version 1 is used, and written anew", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(part_blocks * block_bytes, 11));
  interrupt_after(path, to.path(), 12);
  const std::string journal = read_file(to / journal_name);
  const auto parsed = parse_journal(std::as_bytes(std::span{journal}));
  REQUIRE(parsed.has_value());
  JournalHeader header = parsed->header;
  header.version = journal_version_old;
  header.entry[0] ^= std::byte{1};  // it had no name in its hash
  header.entry[5] ^= std::byte{1};
  JournalWriter writer{header};
  std::vector<std::byte> bytes{writer.header().begin(), writer.header().end()};
  for (const Claim& claim : parsed->claims) writer.append(claim, bytes);
  write_file(to / journal_name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  interrupt_after(path, to.path(), 1);
  const std::string written = read_file(to / journal_name);
  CHECK(parse_journal(std::as_bytes(std::span{written}))->header == parsed->header);
  CHECK(send({path}, to.path()).blocks_skipped == 13);
  CHECK(names_in(to.path()) == std::vector<std::string>{"f"});
}

// Goal:   of many parts the newest goes on and all of ours go. Method: copies of a part under the
//         names that sessions use, one of them of the user's own. Bounds: exact.
TEST_CASE("P8 of many parts the newest goes on, and the others go", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(part_blocks * block_bytes, 11));
  interrupt_after(path, to.path(), 3);
  const auto copy = [&](const std::string& stem) {
    fs::copy(to / part_name, to / (stem + std::string{part_suffix}));
    fs::copy(to / journal_name, to / (stem + std::string{journal_suffix}));
  };
  for (int i = 1; i <= 9; ++i) copy(".f." + std::to_string(i));
  copy(temporary_stem("f", random_tag()));
  write_file(to / ".f.10.part", "mine");
  write_file(to / ".f.0123456789abcde.part", "mine");
  fs::copy(to / journal_name, to / ".f.2.x.onehop-journal");
  fs::remove(to / ".f.4.onehop-journal");  // nothing says whose it is
  const std::string newest = temporary_stem("f", random_tag());
  {
    const TempFolder other;
    interrupt_after(path, other.path(), 9);
    fs::copy(other / part_name, to / (newest + std::string{part_suffix}));
    fs::copy(other / journal_name, to / (newest + std::string{journal_suffix}));
  }
  CHECK(send({path}, to.path()).blocks_skipped == 9);
  CHECK(read_file(to / "f") == read_file(path));
  CHECK(names_in(to.path()) == std::vector<std::string>{".f.0123456789abcde.part", ".f.10.part",
                                                        ".f.2.x.onehop-journal", ".f.4.part", "f"});
}

TEST_CASE("P8 a part of another file whose name has a number at its end stays", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string(), other = (from / "f.1").string();
  write_file(path, random_bytes(part_blocks * block_bytes, 11));
  write_file(other, random_bytes(part_blocks * block_bytes, 12));
  interrupt_after(other, to.path(), 5);
  CHECK(send({path}, to.path()).blocks_skipped == 0);
  CHECK(send({other}, to.path()).blocks_skipped == 5);
  CHECK(names_in(to.path()) == std::vector<std::string>{"f", "f.1"});
}
