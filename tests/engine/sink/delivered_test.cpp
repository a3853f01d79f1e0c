// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a session that died had delivered, half delivered, or never touched, and what the next one
// makes of it.
#include <sys/resource.h>
#include <sys/wait.h>

#include "engine/disk/confined.hpp"
#include "engine/disk/own_names.hpp"
#include "engine/disk/session_journal.hpp"
#include "engine/list/pack.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

constexpr std::size_t blocks = 12;

}  // namespace

TEST_CASE(
    "C1 what a session delivered before it died is counted as there, whatever --on-exist says",
    "[engine][file]") {
  const OnExist on_exist =
      GENERATE(OnExist::ask, OnExist::resume, OnExist::skip, OnExist::rename, OnExist::overwrite);
  const std::size_t small_bytes =
      GENERATE(std::size_t{0}, std::size_t{1000}, std::size_t{2 * block_bytes + 1});
  INFO("policy " << static_cast<int>(on_exist) << ", small file of " << small_bytes);
  const TempFolder from, to;
  const std::string small = (from / "small").string(), big = (from / "big").string();
  write_file(small, random_bytes(small_bytes, 30));
  write_file(big, random_bytes(blocks * block_bytes, 31));
  kill_at({small, big}, to.path(), on_exist, at_block(1, 8));
  REQUIRE(fs::exists(to / "small"));
  CHECK(fs::exists(to / session_name));

  const Outcome outcome = send({small, big}, to.path(), on_exist);
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK(outcome.done.size() == 2);
  CHECK(outcome.blocks_skipped == blocks_of(small_bytes) + 8);
  CHECK(names_in(to.path()) == std::vector<std::string>{"big", "small"});
  CHECK(read_file(to / "small") == read_file(small));
  CHECK(read_file(to / "big") == read_file(big));
}

TEST_CASE("C1 under rename the second name of a delivered file is found, too", "[engine][file]") {
  const TempFolder from, to;
  const std::string small = (from / "small").string(), big = (from / "big").string();
  write_file(small, random_bytes(1000, 32));
  write_file(big, random_bytes(blocks * block_bytes, 33));
  write_file(to / "small", "somebody else's");
  kill_at({small, big}, to.path(), OnExist::rename, at_block(1, 3));
  CHECK(send({small, big}, to.path(), OnExist::rename).blocks_skipped == 1 + 3);
  CHECK(names_in(to.path()) == std::vector<std::string>{"big", "small", "small (2)"});
  CHECK(read_file(to / "small") == "somebody else's");
}

// Goal:   a session about some of the files of one that died leaves what is known of the others.
// Method: a file at a time, each delivered under another name. Bounds: exact.
TEST_CASE("C1 what died is known file by file, until each is done", "[engine][file]") {
  const TempFolder from, to;
  const std::string a = (from / "a").string(), b = (from / "b").string(),
                    big = (from / "big").string();
  write_file(a, random_bytes(1000, 38));
  write_file(b, random_bytes(1000, 39));
  write_file(big, random_bytes(blocks * block_bytes, 40));
  for (const char* name : {"a", "b"}) write_file(to / name, "somebody else's");
  kill_at({a, b, big}, to.path(), OnExist::rename, at_block(2, 3));
  REQUIRE(fs::exists(to / "b (2)"));
  std::vector<std::string> wanted{session_name, "a", "a (2)", "b", "b (2)", "big"};
  CHECK(send({a, big}, to.path(), OnExist::rename).blocks_skipped == 1 + 3);
  CHECK(names_in(to.path()) == wanted);
  CHECK(send({b}, to.path(), OnExist::rename).blocks_skipped == 1);
  wanted.erase(wanted.begin());
  CHECK(names_in(to.path()) == wanted);
}

TEST_CASE("P5 a delivered file that somebody has written to since is as any other that exists",
          "[engine][file]") {
  const TempFolder from, to;
  const std::string small = (from / "small").string(), big = (from / "big").string();
  const std::string mine(1000, 'm');
  write_file(small, random_bytes(1000, 34));
  write_file(big, random_bytes(blocks * block_bytes, 35));
  const OnExist on_exist = GENERATE(OnExist::ask, OnExist::rename, OnExist::overwrite);
  kill_at({small, big}, to.path(), on_exist, at_block(1, 3));
  write_file(to / "small", mine);
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                             {.tv_sec = 1'000'000'000, .tv_nsec = 0}};
  REQUIRE(::utimensat(AT_FDCWD, (to / "small").c_str(), times, 0) == 0);
  if (on_exist == OnExist::ask) {
    const Manifest manifest = open_files({small, big}).manifest;
    const auto refused = prepare_sink(manifest, sink_settings(to.path(), manifest));
    REQUIRE(refused.has_error());
    CHECK(refused.error().errno_value == EEXIST);
  } else {
    const Outcome outcome = send({small, big}, to.path(), on_exist);
    CHECK(outcome.done.size() == 2);
    CHECK(read_file(to / (on_exist == OnExist::rename ? "small (2)" : "small")) ==
          read_file(small));
  }
  CHECK((read_file(to / "small") == mine) == (on_exist != OnExist::overwrite));
}

TEST_CASE("P8 a user's own file that is called as a session's journal stays", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(1000, 37));
  write_file(to / session_name, "mine");
  CHECK(send({path}, to.path()).done.size() == 1);
  CHECK(names_in(to.path()) == std::vector<std::string>{session_name, "f"});
  CHECK(read_file(to / session_name) == "mine");
}

TEST_CASE("P5 equal content is no conflict, other content of the same size is one and stays",
          "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(3 * block_bytes + 1, 36));
  SECTION("equal") {
    fs::copy(path, to / "f");
    const Outcome outcome = send({path}, to.path(), OnExist::resume);
    CHECK(outcome.done.size() == 1);
    CHECK(outcome.blocks_carried == 0);
  }
  SECTION("other") {
    std::string other = read_file(path);
    other.back() ^= 1;
    write_file(to / "f", other);
    const Outcome outcome = send({path}, to.path(), OnExist::resume);
    REQUIRE(outcome.sink_failure.has_value());
    CHECK(outcome.sink_failure->failure == FileFailure::differs);
    CHECK(read_file(to / "f") == other);
  }
  CHECK(names_in(to.path()) == std::vector<std::string>{"f"});
}

// One descriptor per file that is there would end the session at the limit of descriptors.
TEST_CASE("more files are there than a process may have open", "[engine][file]") {
  const TempFolder from, to;
  std::vector<std::string> paths;
  for (int i = 0; i < 200; ++i) {
    paths.push_back((from / (std::string{"f"}.append(std::to_string(i)))).string());
    write_file(paths.back(), std::to_string(i));
  }
  REQUIRE(send(paths, to.path()).done.size() == paths.size());
  SourceFiles files = open_files(paths);
  const Manifest manifest = files.manifest;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto open_now = static_cast<rlim_t>(::open("/dev/null", O_RDONLY));
    const rlimit few{.rlim_cur = open_now + 40, .rlim_max = open_now + 40};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) ::_exit(2);
    ::_exit(prepare_sink(manifest, sink_settings(to.path(), manifest, OnExist::resume)).has_value()
                ? 0
                : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}

// A power cut may take a record of the session that was not synced, but no name that is older in
// the part's own folder than the part's size.
TEST_CASE("C2 a part has its journal beside it, or its record in the session's before any byte",
          "[engine][file]") {
  const std::size_t bytes =
      GENERATE(std::size_t{packed_bytes_max}, std::size_t{packed_bytes_max + 1});
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(bytes, 40));
  SourceFiles files = open_files({path});
  const Manifest manifest = files.manifest;
  const std::unique_ptr<PreparedSink> sink =
      make_sink(manifest, sink_settings(to.path(), manifest));
  Source source{{.slots = 16}, make_io()};
  source.add(answered_volume(std::move(files), *sink));
  Wire wire{&source, *sink};
  wire.is_root_lost = true;
  static_cast<void>(wire.run());
  CHECK(fs::exists(to / part_name));
  CHECK(fs::exists(to / journal_name) == (bytes > packed_bytes_max));
  CHECK(fs::exists(to / session_name) == (bytes <= packed_bytes_max));
}

// Goal:   wherever between its first byte and its end a session dies, the next one leaves nothing
//         but the file.
// Method: the states that a kill can leave, made from the real parts: before and after the mode is
//         set, with the final name but with the journal, with a journal or a session's file that
//         was not even begun; and after a power cut, with a journal that is empty or zeros.
// Bounds: the folder holds the file alone, with its bytes and its mode.
TEST_CASE("C2 whatever state a kill leaves, the next session leaves the file alone",
          "[engine][file]") {
  const std::size_t bytes =
      GENERATE(std::size_t{0}, std::size_t{1000}, std::size_t{5 * block_bytes});
  const OnExist on_exist = GENERATE(OnExist::ask, OnExist::rename, OnExist::overwrite);
  INFO(bytes << " bytes, policy " << static_cast<int>(on_exist));
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(bytes, 39));
  fs::permissions(path, static_cast<fs::perms>(0640));
  SourceFiles files = open_files({path});
  const Manifest manifest = files.manifest;
  const auto begin = [&](bool has_root) {
    const std::unique_ptr<PreparedSink> sink =
        make_sink(manifest, sink_settings(to.path(), manifest, on_exist));
    Source source{{.slots = 16}, make_io()};
    source.add(answered_volume(std::move(files), *sink));
    Wire wire{&source, *sink};
    if (!has_root) wire.is_root_lost = true;
    return wire.run();
  };
  SECTION("every block is there") { begin(false); }
  SECTION("the mode is set already") {
    begin(false);
    SessionJournal session;  // as finish() does before
    const Fd root{::open(to.path().c_str(), O_RDONLY | O_DIRECTORY)};
    session.adopt(root.get(), false);
    const int part = ::open((to / part_name).c_str(), O_RDWR);
    CHECK(session.add(entry_hash(manifest.files[0]), part) == 0);
    ::close(part);
    fs::permissions(to / part_name, static_cast<fs::perms>(0444));
  }
  const auto deliver_and_die = [&](const std::optional<std::string>& blank) {
    begin(false);
    const bool has_journal = fs::exists(to / journal_name);
    const std::string journal = has_journal ? blank.value_or(read_file(to / journal_name)) : "";
    const std::unique_ptr<PreparedSink> sink =
        make_sink(manifest, sink_settings(to.path(), manifest, on_exist));
    SourceFiles again = open_files({path});
    Source source{{.slots = 16}, make_io()};
    source.add(answered_volume(std::move(again), *sink));
    Wire wire{&source, *sink};
    CHECK(wire.run().done.size() == 1);  // and then the kill: close() is not called
    if (has_journal) write_file(to / journal_name, journal);
    if (has_journal) fs::permissions(to / journal_name, static_cast<fs::perms>(part_mode));
    CHECK(fs::exists(to / session_name));
  };
  SECTION("it has its name, and the session its journals") { deliver_and_die({}); }
  SECTION("it has its name, and the disk had nothing of its journal") { deliver_and_die(""); }
  SECTION("it has its name, and the disk had the length of its journal alone") {
    deliver_and_die(std::string(journal_header_bytes, '\0'));
  }
  SECTION("a session of which the disk had the length alone") {
    write_file(to / session_name, std::string(72, '\0'));
    fs::permissions(to / session_name, fs::perms::owner_read | fs::perms::owner_write);
  }
  SECTION("a part and a session that were only begun") {
    write_file(to / part_name, "");
    write_file(to / session_name, "ONE");
    fs::permissions(to / part_name, fs::perms::owner_read | fs::perms::owner_write);
  }
  const Outcome outcome = send({path}, to.path(), on_exist);
  CHECK_FALSE(outcome.sink_failure.has_value());
  CHECK(names_in(to.path()) == std::vector<std::string>{"f"});
  CHECK(read_file(to / "f") == read_file(path));
  CHECK(fs::status(to / "f").permissions() == static_cast<fs::perms>(0640 & ~read_umask()));
}

TEST_CASE("a session's journal tells inodes, survives a torn tail, and is held by one session",
          "[engine][file]") {
  const TempFolder to;
  const Fd root{::open(to.path().c_str(), O_RDONLY | O_DIRECTORY)};
  Manifest manifest;
  for (const char* name : {"a", "b", "c"})
    manifest.files.push_back({.name = name, .size = 1, .mode = 0644});
  const auto hash = [&](std::size_t i) { return entry_hash(manifest.files[i]); };
  write_file(to / "x", "x");
  write_file(to / "y", "y");
  {
    SessionJournal session;
    session.adopt(root.get(), false);
    const Fd x{::open((to / "x").c_str(), O_RDONLY)}, y{::open((to / "y").c_str(), O_RDONLY)};
    CHECK(session.add(hash(0), x.get()) == 0);
    CHECK(session.add(hash(1), y.get()) == 0);
    SessionJournal other;  // the first one lives
    other.adopt(root.get(), false);
    CHECK(other.is_empty());
    CHECK(other.add(hash(2), x.get()) == 0);
    const std::vector<std::string> own = list_own(root.get(), session_suffix);
    REQUIRE(own.size() == 2);
    for (const std::string& name : own)
      if (name != session_name) CHECK(is_tag(name.substr(0, name.size() - session_name.size())));
    other.remove();
  }
  const auto size = fs::file_size(to / session_name);
  const int keep = GENERATE(0, 1, 30, 56);
  fs::resize_file(to / session_name, size - static_cast<std::uintmax_t>(keep));
  SessionJournal session;
  session.adopt(root.get(), false);
  CHECK(session.is_made(hash(0), *identity_of(root.get(), "x")));
  CHECK_FALSE(session.is_made(hash(0), *identity_of(root.get(), "y")));
  CHECK(session.is_made(hash(1), *identity_of(root.get(), "y")) == (keep == 0));
  session.remove();
  CHECK(names_in(to.path()) == std::vector<std::string>{"x", "y"});
}

TEST_CASE("more dead sessions than names: the oldest one is forgotten", "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, "content");
  const Fd root{::open(to.path().c_str(), O_RDONLY | O_DIRECTORY)};
  for (int i = 0; i < 40; ++i) {
    Manifest manifest;
    manifest.files.push_back(
        {.name = std::string{"other"}.append(std::to_string(i)), .size = 1, .mode = 0644});
    SessionJournal session;
    session.adopt(root.get(), false);
    const Fd file{::open(path.c_str(), O_RDONLY)};
    CHECK(session.add(entry_hash(manifest.files[0]), file.get()) == 0);
  }
  CHECK(names_in(to.path()).size() == 32);
  CHECK(send({path}, to.path()).done.size() == 1);
}

TEST_CASE("C2 a preparation that is withdrawn ends, changes nothing and lets go of the part",
          "[engine][file]") {
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(blocks * block_bytes, 40));
  kill_at({path}, to.path(), OnExist::ask, at_block(0, 9));
  const std::string journal = read_file(to / journal_name);
  const Manifest manifest = open_files({path}).manifest;
  std::stop_source withdraw;
  SinkSettings options = sink_settings(to.path(), manifest);
  options.withdrawn = withdraw.get_token();
  withdraw.request_stop();
  const auto sink = prepare_sink(manifest, options);
  REQUIRE(sink.has_error());
  CHECK(sink.error().code == ExitCode::interrupted);
  CHECK(read_file(to / journal_name) == journal);
  CHECK(send({path}, to.path()).blocks_skipped == 9);
}

// Goal:   a kill costs what was in flight, not what a checkpoint had not come to yet.
// Method: sessions die with a checkpoint that never comes due, once with no digest announced.
// Bounds: every block that was written is skipped by the next session.
TEST_CASE("C2 a block is in the journal when it is written, announced or not", "[engine][file]") {
  const bool is_announced = GENERATE(true, false);
  const TempFolder from, to;
  const std::string path = (from / "f").string();
  write_file(path, random_bytes(blocks * block_bytes, 41));
  SourceFiles files = open_files({path});
  const Manifest manifest = files.manifest;
  {
    SinkSettings options = sink_settings(to.path(), manifest);
    options.checkpoint_span = 1h;
    const std::unique_ptr<PreparedSink> sink = make_sink(manifest, options);
    Source source{{.slots = 16}, make_io()};
    source.add(answered_volume(std::move(files), *sink));
    Wire wire{&source, *sink};
    wire.is_digest_lost = !is_announced;
    wire.is_cut = at_block(0, 9);
    static_cast<void>(wire.run());
  }
  CHECK(send({path}, to.path()).blocks_skipped == 9);
  CHECK(read_file(to / "f") == read_file(path));
}
