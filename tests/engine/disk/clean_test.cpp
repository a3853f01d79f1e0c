// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What clean() takes away of interrupted sessions, and what it leaves.
//
// Goal:   P8: all that a session which died left is removed, and not one name more.
// Method: real sessions are cut off as by SIGKILL; beside what they leave stand a user's own files
//         of such names, links, and what another descriptor holds under flock.
// Bounds: exact lists of names; bytes as stat(2) counts them.
#include <sys/file.h>
#include <sys/wait.h>

#include <map>

#include "engine/disk/clean.hpp"
#include "engine/disk/stage.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

using Names = std::vector<std::string>;
const std::string stage_name{stage_suffix};

struct Cleaning {
  Names removed, failed;
  std::map<std::string, std::string> kept;  // and why
  std::uint64_t bytes = 0;
};

Cleaning clean_up(const fs::path& folder, bool is_dry_run = false) {
  Cleaning cleaning;
  const auto done = clean({folder.string(), is_dry_run}, [&](const CleanItem& item) {
    using enum CleanItem::Outcome;
    if (item.outcome == kept) {
      CHECK(cleaning.kept.emplace(item.path, item.cause).second);
      CHECK_FALSE(item.cause.empty());
    } else {
      (item.outcome == removed ? cleaning.removed : cleaning.failed).push_back(item.path);
      cleaning.bytes += item.bytes;
    }
  });
  REQUIRE(done.has_value());
  return cleaning;
}

std::uint64_t bytes_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

Fd hold(const fs::path& path) {
  Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  REQUIRE(::flock(fd.get(), LOCK_EX | LOCK_NB) == 0);
  return fd;
}

/// "f" of some blocks, cut off in the middle: a part and its journal.
void leave_part(const fs::path& to) {
  const TempFolder from;
  write_file(from / "f", random_bytes(8 * block_bytes, 1));
  kill_at({(from / "f").string()}, to, OnExist::ask, at_block(0, 4));
  REQUIRE(names_in(to) == Names{journal_name, part_name});
}

/// "d/f" of one block, cut off before its name: a part, and a record in the session's journal.
void leave_recorded_part(const fs::path& to) {
  const TempFolder from;
  write_file(from / "f", random_bytes(1000, 2));
  SourceFiles files = open_files({(from / "f").string()});
  files.manifest.files[0].name = "d/f";
  const Manifest manifest = files.manifest;
  const std::unique_ptr<PreparedSink> sink = make_sink(manifest, sink_settings(to, manifest));
  Source source{{.slots = 16}, make_io()};
  source.add(answered_volume(std::move(files), *sink));
  Wire wire{&source, *sink};
  wire.is_root_lost = true;
  static_cast<void>(wire.run());
  REQUIRE(names_in(to) == Names{session_name, "d", "d/" + part_name});
}

void leave_stage(const fs::path& to) {
  const Fd root{::open(to.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  Stage stage;
  REQUIRE(stage.open(root.get()) == 0);
  REQUIRE(stage.create(0x1f, 0600).is_open());
  write_file(to / stage_name / "1f", random_bytes(9000, 3));
}

}  // namespace

TEST_CASE("P8 clean removes a part with its journal, and a journal alone", "[engine][file]") {
  const TempFolder to;
  fs::create_directory(to / "a");
  leave_part(to / "a");
  fs::remove(to / "a" / part_name);  // its session died between rename and unlink
  fs::create_directory(to / "a/b");
  leave_part(to / "a/b");
  write_file(to / "f", "whole");
  const std::string deep = "a/b/";
  ::chmod((to / (deep + part_name)).c_str(), 0444);  // and its before its rename
  const std::uint64_t bytes = bytes_of(to / (deep + part_name)) +
                              bytes_of(to / (deep + journal_name)) +
                              bytes_of(to / "a" / journal_name);

  const Names all{"a/" + journal_name, deep + part_name, deep + journal_name};
  CHECK(clean_up(to.path(), true).removed == all);
  CHECK(names_in(to.path()).size() == 3 + 3);

  const Cleaning cleaning = clean_up(to.path());
  CHECK(cleaning.removed == all);
  CHECK(cleaning.kept.empty());
  CHECK(cleaning.bytes == bytes);
  CHECK(names_in(to.path()) == Names{"a", "a/b", "f"});
  CHECK(clean_up(to.path()).removed.empty());
}

TEST_CASE("P8 clean removes journals that a power cut left blank", "[engine][file]") {
  const std::string blank = GENERATE(std::string{}, std::string(9000, '\0'));
  const TempFolder to;
  const auto leave = [&](const std::string& name, const std::string& content, unsigned mode) {
    write_file(to / name, content);
    fs::permissions(to / name, static_cast<fs::perms>(mode));
  };
  leave(journal_name, blank, 0600);
  leave(session_name, blank, 0600);
  CHECK(clean_up(to.path()).removed.size() == 2);
  leave(journal_name, blank, 0644);
  leave(session_name, blank, 0644);
  CHECK(clean_up(to.path()).kept.size() == 2);
  leave(journal_name, blank + "x", 0600);
  leave(session_name, blank + "x", 0600);
  CHECK(clean_up(to.path()).kept.size() == 2);
}

TEST_CASE("P8 clean knows a part without a journal by its inode, and the record goes last",
          "[engine][file]") {
  const TempFolder to;
  leave_recorded_part(to.path());
  write_file(to / ".1.onehop-session", "ONEHOPS");  // its session died in its first write
  ::chmod((to / ".1.onehop-session").c_str(), 0600);
  CHECK(clean_up(to.path()).removed == Names{"d/" + part_name, ".1.onehop-session", session_name});
  CHECK(names_in(to.path()) == Names{"d"});
}

TEST_CASE("P8 clean leaves what a session delivered, though it is called as a part is",
          "[engine][file]") {
  const TempFolder from, to;
  const std::string small = (from / part_name).string(), big = (from / "g").string();
  write_file(small, random_bytes(1000, 4));
  ::chmod(small.c_str(), 0600);
  write_file(big, random_bytes(8 * block_bytes, 5));
  kill_at({small, big}, to.path(), OnExist::ask, at_block(1, 4));
  const Cleaning cleaning = clean_up(to.path());
  CHECK(cleaning.kept.contains(part_name));
  CHECK(cleaning.removed.size() == 3);
  CHECK(names_in(to.path()) == Names{part_name});
  CHECK(read_file(to / part_name) == read_file(small));
}

TEST_CASE("P8 clean removes a stage with what lies in it", "[engine][file]") {
  const TempFolder to;
  leave_stage(to.path());
  const std::uint64_t bytes = bytes_of(to / stage_name / "1f");
  CHECK(clean_up(to.path(), true).bytes == bytes);
  CHECK(fs::exists(to / stage_name / "1f"));
  const Cleaning cleaning = clean_up(to.path());
  CHECK(cleaning.removed == Names{stage_name});
  CHECK(cleaning.bytes == bytes);
  CHECK(names_in(to.path()).empty());
}

TEST_CASE("P8 clean leaves a user's own files of such names, and says why", "[engine][file]") {
  const TempFolder to;
  for (const char* name : {".onehop-session", ".1.onehop-session", ".g.onehop-journal", ".h.part",
                           ".h.onehop-journal", ".k.part", ".part", "l.part", ".onehop-journal"})
    write_file(to / name, name);
  write_file(to / ".2.onehop-session", "");
  const auto make_stage = [&](const std::string& name, mode_t mode, const std::string& leaf) {
    fs::create_directories((to / name / leaf).parent_path());
    write_file(to / name / leaf, "mine");
    ::chmod((to / name).c_str(), mode);
  };
  make_stage(".onehop-stage", 0700, "a user's");
  make_stage(".1.onehop-stage", 0755, "1f");
  make_stage(".2.onehop-stage", 0700, "aa/bb");
  const Names before = names_in(to.path());

  const Cleaning cleaning = clean_up(to.path());
  CHECK(cleaning.removed.empty());
  CHECK(cleaning.failed.empty());
  CHECK(names_in(to.path()) == before);
  CHECK(read_file(to / ".onehop-session") == ".onehop-session");
  Names kept;
  for (const auto& [name, cause] : cleaning.kept) kept.push_back(name);
  CHECK(kept == Names{".1.onehop-session", ".1.onehop-stage", ".2.onehop-session",
                      ".2.onehop-stage", ".g.onehop-journal", ".h.part", ".k.part",
                      ".onehop-session", ".onehop-stage"});
}

TEST_CASE("P8 clean leaves a file that was made beside a journal whose part is gone",
          "[engine][file]") {
  const TempFolder to;
  leave_part(to.path());
  SECTION("later") {
    fs::remove(to / part_name);
    write_file(to / part_name, "mine");
    const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                               {.tv_sec = 1'000'000'000, .tv_nsec = 0}};
    REQUIRE(::utimensat(AT_FDCWD, (to / journal_name).c_str(), times, 0) == 0);
  }
  SECTION("longer than the journal's file") { fs::resize_file(to / part_name, 9 * block_bytes); }
  const Names before = names_in(to.path());
  const Cleaning cleaning = clean_up(to.path());
  CHECK(cleaning.removed.empty());
  CHECK(cleaning.kept.contains(part_name));
  CHECK(names_in(to.path()) == before);
}

TEST_CASE("P8 clean leaves what a session that runs holds", "[engine][file]") {
  const TempFolder to;
  leave_recorded_part(to.path());
  fs::create_directory(to / "e");
  leave_part(to / "e");
  leave_stage(to.path());
  const Names before = names_in(to.path());
  {
    const Fd session = hold(to / session_name), part = hold(to / "e" / part_name),
             stage = hold(to / stage_name);
    const Cleaning cleaning = clean_up(to.path());
    CHECK(cleaning.removed.empty());
    CHECK(cleaning.kept.at(session_name) == "a session that runs holds it");
    CHECK(cleaning.kept.at("e/" + part_name) == "a session that runs holds it");
    CHECK(cleaning.kept.at(stage_name) == "a session that runs holds it");
    CHECK(names_in(to.path()) == before);
  }
  CHECK(clean_up(to.path()).kept.empty());
  CHECK(names_in(to.path()) == Names{"d", "e"});
}

TEST_CASE("P2 P8 clean follows no link, and leaves what has a second name", "[engine][file]") {
  const TempFolder to, outside;
  leave_part(outside.path());
  leave_stage(outside.path());
  write_file(outside / "victim", "precious");
  fs::create_directory_symlink(outside.path(), to / "folder");
  fs::create_directory_symlink(outside / stage_name, to / stage_name);
  fs::create_symlink(outside / part_name, to / ".k.part");
  fs::create_symlink(outside / journal_name, to / ".k.onehop-journal");
  fs::create_symlink(outside / "victim", to / session_name);
  fs::create_hard_link(outside / part_name, to / part_name);
  fs::create_hard_link(outside / journal_name, to / journal_name);
  REQUIRE(::mkfifo((to / ".m.part").c_str(), 0600) == 0);
  const Names before = names_in(to.path()), before_outside = names_in(outside.path());
  const Cleaning cleaning = clean_up(to.path());
  CHECK(cleaning.removed.empty());
  CHECK(cleaning.failed.empty());
  CHECK(cleaning.kept.size() == 5);
  CHECK(cleaning.kept.at(part_name).find("one name") != std::string::npos);
  CHECK(cleaning.kept.at(session_name) == "it is a symbolic link");
  CHECK(names_in(to.path()) == before);
  CHECK(names_in(outside.path()) == before_outside);
  CHECK(read_file(outside / "victim") == "precious");
}

TEST_CASE("P8 clean keeps the records while something cannot be removed", "[engine][file]") {
  const TempFolder to;
  leave_recorded_part(to.path());
  fs::create_directory(to / "e");
  leave_part(to / "e");
  fs::permissions(to / "e", fs::perms::owner_read | fs::perms::owner_exec);
  const Names before = names_in(to.path());
  const auto is_kept = [&] {
    const Cleaning cleaning = clean_up(to.path());
    return cleaning.failed == Names{"e/" + part_name} && cleaning.kept.contains(session_name);
  };
  if (::geteuid() != 0) {
    CHECK(is_kept());
  } else {  // root may remove it: ask as somebody else
    constexpr uid_t other = 65534;
    for (const std::string& name : before)
      REQUIRE(::lchown((to / name).c_str(), other, other) == 0);
    REQUIRE(::chown(to.path().c_str(), other, other) == 0);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::setgid(other) == 0 && ::setuid(other) == 0 && is_kept() ? 0 : 1);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  fs::permissions(to / "e", fs::perms::owner_all);
  CHECK(fs::exists(to / session_name));
}

TEST_CASE("clean says that there is no such folder", "[engine][file]") {
  const TempFolder to;
  const auto done =
      clean({(to / "none").string()}, [](const CleanItem&) { FAIL("there is nothing"); });
  REQUIRE(done.has_error());
  CHECK(done.error().code == ExitCode::local_file_error);
}
