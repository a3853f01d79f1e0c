// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a crash, an interruption or a changed file leaves behind, and what the next session makes of
// it.
#include <signal.h>
#include <sys/wait.h>

#include "tests/engine/sink/interrupt_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

constexpr std::size_t blocks = 24;

}  // namespace

TEST_CASE("C2 an interrupted file is resumed, and only the rest is carried", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "data.bin").string();
  write_file(path, random_bytes(blocks * block_bytes - 5, 7));
  interrupt_after(path, to.path(), 10);
  CHECK(names_in(to.path()) == part_and_journal("data.bin"));
  interrupt_after(path, to.path(), 3);

  const Outcome outcome = send({path}, to.path());
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK(outcome.blocks_skipped == 13);
  CHECK(outcome.blocks_carried == blocks - 13);
  CHECK(names_in(to.path()) == std::vector<std::string>{"data.bin"});
  CHECK(read_file(to / "data.bin") == read_file(path));
}

// Goal:   a transfer that goes on does not wait until what is there was read.
// Method: the blocks that are carried are noted, and those that are compared. Bounds: what is new
// goes first, and the first of it before more than a few blocks were read.
TEST_CASE("C2 what is new goes on at once, while what is there is read", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "data.bin").string();
  write_file(path, random_bytes(blocks * block_bytes, 7));
  interrupt_after(path, to.path(), 16);
  std::size_t read_at_first = 0;
  std::vector<std::uint64_t> carried;
  const Outcome outcome = send_files(open_files({path}), to.path(), OnExist::ask, [&](Wire& wire) {
    wire.on_carry = [&](const BlockRef& block) {
      if (carried.empty()) read_at_first = wire.outcome().blocks_read;
      CHECK(wire.outcome().blocks_skipped == 0);
      carried.push_back(block.offset / block_bytes);
    };
  });
  CHECK(carried == std::vector<std::uint64_t>{16, 17, 18, 19, 20, 21, 22, 23});
  CHECK(read_at_first < 4);
  CHECK(outcome.blocks_read == 16);
  CHECK(outcome.blocks_skipped == 16);
  CHECK(read_file(to / "data.bin") == read_file(path));
}

// Goal:   a journal that was torn by a crash at any byte resumes what it still proves, and the file
// ends up right. Method: cut the journal of an interrupted session at every byte offset, and resume
// each time; further, leave garbage
//         behind the cut, as a block of a disk that held something else does.
// Bounds: records whole before the cut are skipped, no other; the result is exact. A cut header
// means a fresh start, and nothing shows whose the part beside it is: both stay as they are.
TEST_CASE("C2 resume after a journal torn at every byte offset", "[engine][file]") {
  const TempFolder from, kept, scratch;
  const std::string path = (from / "f").string();
  constexpr std::size_t few_blocks = 4, recorded = 3;
  const std::string data = random_bytes(few_blocks * block_bytes, 8);
  write_file(path, data);
  interrupt_after(path, kept.path(), recorded);
  const std::string journal_name = temporary_name("f", journal_suffix),
                    part_name = temporary_name("f", part_suffix);
  const std::string journal = read_file(kept / journal_name), part = read_file(kept / part_name);
  REQUIRE(journal.size() == journal_header_bytes + recorded * journal_record_bytes);

  for (const bool has_garbage : {false, true}) {
    for (std::size_t cut = 0; cut <= journal.size(); ++cut) {
      INFO("cut at " << cut << (has_garbage ? " with garbage behind" : ""));
      const fs::path to = scratch / "to";
      fs::create_directory(to);
      write_file(to / part_name, part);
      write_file(to / journal_name, journal.substr(0, cut));
      std::string garbage = random_bytes(has_garbage ? journal.size() - cut : 0, cut);
      if (!garbage.empty())
        garbage[0] = static_cast<char>(
            ~journal[cut]);  // one byte of it may else be the very one that was cut
      append(to / journal_name, garbage);
      fs::permissions(to / part_name, fs::perms::owner_read | fs::perms::owner_write);
      fs::permissions(to / journal_name, fs::perms::owner_read | fs::perms::owner_write);
      const Outcome outcome = send({path}, to);
      CHECK_FALSE(outcome.sink_failure.has_value());
      const std::size_t whole =
          cut < journal_header_bytes ? 0 : (cut - journal_header_bytes) / journal_record_bytes;
      CHECK(outcome.blocks_skipped == whole);
      CHECK(read_file(to / "f") == data);
      const std::string cut_journal = journal.substr(0, cut) + garbage;
      const bool is_ours = cut >= journal_header_bytes || cut_journal.empty();
      if (is_ours) {
        CHECK(names_in(to) == std::vector<std::string>{"f"});
      } else {
        CHECK(names_in(to) == std::vector<std::string>{journal_name, part_name, "f"});
        CHECK(read_file(to / journal_name) == cut_journal);
        CHECK(read_file(to / part_name) == part);
      }
      fs::remove_all(to);
    }
  }
}

TEST_CASE("C2 what follows a damaged record is cut off before the journal goes on",
          "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(blocks * block_bytes, 18));
  interrupt_after(path, to.path(), 6);
  const fs::path journal = to / temporary_name("f", journal_suffix);
  {
    std::fstream file{journal, std::ios::binary | std::ios::in | std::ios::out};
    file.seekp(journal_header_bytes + 2 * journal_record_bytes + 9);
    file.put('!').put('?');
  }
  interrupt_after(path, to.path(),
                  1);  // two records are believed, one is added, three old ones must not follow it
  CHECK(fs::file_size(journal) == journal_header_bytes + 3 * journal_record_bytes);
  CHECK(send({path}, to.path()).blocks_skipped == 3);
  CHECK(read_file(to / "f") == read_file(path));
}

TEST_CASE("C2 a part whose bytes rotted is hashed again and not believed", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(blocks * block_bytes, 9));
  interrupt_after(path, to.path(), 12);
  {
    std::fstream part{to / temporary_name("f", part_suffix),
                      std::ios::binary | std::ios::in | std::ios::out};
    part.seekp(5 * block_bytes + 17);
    part.put('!').put('?');
  }
  const Outcome outcome = send({path}, to.path());
  CHECK(outcome.blocks_skipped == 11);
  CHECK(read_file(to / "f") == read_file(path));
}

TEST_CASE("C2 a truncated part resumes what is left of it", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(blocks * block_bytes, 10));
  interrupt_after(path, to.path(), 12);
  fs::resize_file(to / temporary_name("f", part_suffix), 7 * block_bytes + 1);
  const Outcome outcome = send({path}, to.path());
  CHECK(outcome.blocks_skipped == 7);
  CHECK(read_file(to / "f") == read_file(path));
}

TEST_CASE("C5 a block that differs from the claim is carried again", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(blocks * block_bytes, 13));
  interrupt_after(path, to.path(), 12);
  // Same size, same time, other bytes: only the digests can tell.
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  {
    std::fstream file{path, std::ios::binary | std::ios::in | std::ios::out};
    file.seekp(2 * block_bytes);
    file.put('x').put('y');
  }
  const timespec times[2] = {status.st_atim, status.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  const Outcome outcome = send({path}, to.path());
  CHECK(outcome.blocks_skipped == 11);
  CHECK(read_file(to / "f") == read_file(path));
}

TEST_CASE("resume finds complete files, and never writes into them", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(3 * block_bytes + 1, 14));
  REQUIRE(send({path}, to.path()).done.size() == 1);

  SECTION("an equal file is done without a byte") {
    const Outcome outcome = send({path}, to.path(), OnExist::resume);
    CHECK(outcome.done.size() == 1);
    CHECK(outcome.blocks_carried == 0);
  }
  SECTION("another file of the same size is left alone") {
    const std::string other = random_bytes(3 * block_bytes + 1, 15);
    write_file(to / "f", other);
    const Outcome outcome = send({path}, to.path(), OnExist::resume);
    REQUIRE(outcome.sink_failure.has_value());
    CHECK(outcome.sink_failure->failure == FileFailure::differs);
    CHECK(read_file(to / "f") == other);
  }
}

TEST_CASE("two receivers never share a part", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(blocks * block_bytes, 16));
  SourceFiles files = open_files({path});
  const Manifest manifest = files.manifest;
  const std::unique_ptr<PreparedSink> first =
      make_sink(manifest, sink_settings(to.path(), manifest));
  Source source{{.slots = 16, .direct_io = direct_io_under_test()}, make_io()};
  source.add(only_volume(std::move(files)));
  Wire wire{&source, *first};
  std::size_t seen = 0;
  wire.is_cut = [&](const BlockRef&) { return seen++ == 6; };
  static_cast<void>(wire.run());  // the first session stands still, and lives

  const Outcome second = send({path}, to.path());
  CHECK(second.done.size() == 1);
  CHECK(second.blocks_skipped == 0);
  CHECK(read_file(to / "f") == read_file(path));
  CHECK(fs::exists(to / temporary_name("f", part_suffix)));  // the first one's
}

// Goal:   after SIGKILL at any moment, no wrong file has the final name, and sessions come to an
// end. Method: a child sinks blocks with a checkpoint at every turn; it is killed after a random
// time; repeat until done. Bounds: the final name appears only with the exact bytes; what the
// journal says grows (skipped never shrinks).
// Goal:   the end of a file that fails, or a kill in it, costs nothing, whatever the file's mode.
// Method: a kill, and the part as the end of a session leaves it; the same again, as a user who may
// not open every file. Bounds: exact, and some blocks are there.
TEST_CASE("C2 a part that has its final mode goes on", "[engine][file]") {
  const TempFolder from, to;
  REQUIRE(::chmod(from.path().c_str(), 0755) == 0);
  REQUIRE(::chmod(to.path().c_str(), 0777) == 0);
  const std::string path = (from / "f").string(), data = random_bytes(blocks * block_bytes, 8);
  write_file(path, data);
  const mode_t mode = GENERATE(0444U, 0200U, 0U);
  const auto list = [&] {
    SourceFiles files = open_files({path});
    files.manifest.files[0].mode = mode;
    return files;
  };
  Outcome outcome;
  {
    const AsNobody as_nobody;
    kill_at(list(), to.path(), OnExist::ask, at_block(0, blocks - 1));
    {
      const auto destination = Destination::open({.folder = to.path().string()});
      const Fd part{::open((to / ".f.part").c_str(), O_RDWR | O_CLOEXEC)};
      REQUIRE((destination.has_value() && part.is_open()));
      const Digest entry = entry_hash(list().manifest.files[0]);
      REQUIRE(destination.value()->session().add(entry, part.get()) == 0);
      REQUIRE(::fchmod(part.get(), mode) == 0);
    }
    outcome = send_files(list(), to.path(), OnExist::ask, {});
  }
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK(outcome.blocks_skipped > 0);
  CHECK(names_in(to.path()) == std::vector<std::string>{"f"});
  CHECK(mode_of(to / "f") == mode);
  fs::permissions(to / "f", fs::perms::owner_all);
  CHECK(read_file(to / "f") == data);
}

TEST_CASE("P2 P8 a part of another user stays, whatever the journal beside it says",
          "[engine][file]") {
  if (::geteuid() != 0) return;  // there is nothing of another user to be had
  constexpr uid_t other = 65534;
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(blocks * block_bytes, 9));
  kill_at({path}, to.path(), OnExist::ask, at_block(0, blocks - 1));
  const std::vector<std::string> left = names_in(to.path());
  const std::string name = GENERATE(".f.part", ".f.onehop-journal");
  REQUIRE(::chown((to / name).c_str(), other, other) == 0);
  const Outcome outcome = send({path}, to.path());
  CHECK(outcome.done.size() == 1);
  CHECK(outcome.blocks_skipped == 0);
  CHECK(read_file(to / "f") == read_file(path));
  std::vector<std::string> wanted = left;
  wanted.push_back("f");
  CHECK(names_in(to.path()) == wanted);
}

TEST_CASE("C2 SIGKILL at random moments, then resume", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  const std::string data = random_bytes(96 * block_bytes + 9, 17);
  write_file(path, data);
  const char* const given = std::getenv("ONEHOP_TEST_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::stoull(given) : static_cast<std::uint64_t>(::getpid());
  INFO("again: ONEHOP_TEST_SEED=" << seed);
  std::mt19937_64 random{seed};
  std::size_t kills = 0;
  for (; kills < 60 && !fs::exists(to / "f"); ++kills) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      SourceFiles files = open_files({path});
      const Manifest manifest = files.manifest;
      SinkSettings options = sink_settings(to.path(), manifest);
      options.checkpoint_span = Nanos{0};
      const std::unique_ptr<PreparedSink> sink = make_sink(manifest, options);
      Source source{{.slots = 16, .direct_io = direct_io_under_test()}, make_io()};
      source.add(answered_volume(std::move(files), *sink));
      Wire wire{&source, *sink};
      wire.on_carry = [](BlockRef&) { ::usleep(1000); };
      ::_exit(wire.run().done.size() == 1 ? 0 : 1);
    }
    ::usleep(static_cast<useconds_t>(20'000 + random() % 60'000));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (fs::exists(to / "f")) CHECK(read_file(to / "f") == data);
  }
  INFO("kills " << kills);
  CHECK(kills > 1);  // else nothing was interrupted and this test proved nothing
  if (!fs::exists(to / "f")) {
    const Outcome last = send({path}, to.path());
    CHECK(last.blocks_skipped > 0);
    CHECK(last.done.size() == 1);
  }
  CHECK(read_file(to / "f") == data);
}
