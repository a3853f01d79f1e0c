// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the volumes of a session share: room on the disk, the journals of dead sessions, folders.
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "engine/disk/folder_cache.hpp"
#include "engine/disk/own_names.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::list;
using namespace onehop::disk;
using namespace onehop::source;
using namespace onehop::sink;
using namespace onehop::sink::test;

namespace {

std::uint64_t free_bytes(const fs::path& folder) {
  struct statvfs disk {};
  REQUIRE(::statvfs(folder.c_str(), &disk) == 0);
  return disk.f_bavail * disk.f_frsize;
}

std::shared_ptr<Destination> open_destination(const fs::path& folder) {
  auto opened = Destination::open({.folder = folder.string(), .reserve_bytes = 0});
  if (opened.has_error()) FAIL(opened.error().message());
  return std::move(opened).value();
}

Result<std::unique_ptr<SinkVolume>> prepare(const std::shared_ptr<Destination>& destination,
                                            const std::string& name, std::uint64_t size) {
  Manifest manifest;
  manifest.files.push_back({.name = name, .size = size, .mode = 0644});
  return SinkVolume::prepare(destination, whole_list(manifest), {});
}

}  // namespace

TEST_CASE("Z2 a volume is held against the room that those before it leave", "[engine][file]") {
  const TempFolder to;
  const auto destination = open_destination(to.path());
  // Others write to this disk meanwhile: the bounds are far from its room.
  const std::uint64_t size = free_bytes(to.path()) / 10 * 6;
  auto first = prepare(destination, "a", size);
  REQUIRE(first.has_value());
  const auto refused = prepare(destination, "b", size);
  REQUIRE(refused.has_error());
  CHECK(refused.error().errno_value == ENOSPC);
  CHECK(prepare(destination, "c", size / 3).has_value());  // and what it took is given back
  first.value()->count_written(size / 2);
  CHECK(prepare(destination, "b", size).has_value());
  first.value()->count_written(size);  // more than is left of it is none of its
  CHECK(prepare(destination, "b", size).has_value());
  CHECK(prepare(destination, "d", 0).has_value());
  first = prepare(destination, "a", 1);
  CHECK(prepare(destination, "b", size).has_value());
}

TEST_CASE("P8 the journal of a dead session that this one is not about stays, and is let go of",
          "[engine][file]") {
  const TempFolder from, to;
  const Fd root{::open(to.path().c_str(), O_RDONLY | O_DIRECTORY)};
  const std::string path = (from / "f").string(), other = (from / "other").string();
  write_file(path, "content");
  write_file(other, "content");
  for (const std::string& name : {path, other}) {
    const ManifestEntry entry = open_files({name}).manifest.files[0];
    SessionJournal session;
    session.adopt(root.get(), false);
    CHECK(session.add(entry_hash(entry), root.get()) == 0);
  }
  CHECK(names_in(to.path()).size() == 2);
  CHECK(send({path}, to.path()).done.size() == 1);
  const std::vector<std::string> left = names_in(to.path());
  REQUIRE(left.size() == 2);
  CHECK(left[0] != session_name);
  CHECK(is_own_name(left[0], session_suffix));
  CHECK(send({other}, to.path()).done.size() == 1);
  CHECK(names_in(to.path()) == std::vector<std::string>{"f", "other"});
}

TEST_CASE("a session that goes on writes on in the journal that knows its files",
          "[engine][file]") {
  const TempFolder to;
  const Fd root{::open(to.path().c_str(), O_RDONLY | O_DIRECTORY)};
  write_file(to / "x", "x");
  const Fd file{::open((to / "x").c_str(), O_RDONLY)};
  const auto hash = [](const std::string& name) { return entry_hash({.name = name}); };
  for (int i = 0; i < 5; ++i) {
    SessionJournal session;
    session.adopt(root.get(), false);
    CHECK(session.is_known(hash("a")) == (i > 0));
    CHECK(session.add(hash("a"), file.get()) == 0);
    CHECK(session.add(hash(std::to_string(i)), file.get()) == 0);
  }
  CHECK(names_in(to.path()) == std::vector<std::string>{".onehop-session", "x"});
}

TEST_CASE("C3 a journal that was taken over is this process's own when its sources have changed",
          "[engine][file]") {
  const TempFolder to;
  const Fd root{::open(to.path().c_str(), O_RDONLY | O_DIRECTORY)};
  const auto hash = [](const std::string& name) { return entry_hash({.name = name}); };
  const auto session = [&](bool is_again, const char* known, const char* made) {
    SessionJournal journal;
    journal.adopt(root.get(), is_again);
    if (known != nullptr) CHECK(journal.is_known(hash(known)));
    CHECK(journal.add(hash(made), root.get()) == 0);
    if (is_again) journal.remove();
  };
  const pid_t child = ::fork();
  if (child == 0) {
    session(false, nullptr, "old");
    ::_exit(0);
  }
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  session(false, "old", "before");  // goes on with it
  session(true, nullptr, "after");  // once more, for what has changed alone
  CHECK(names_in(to.path()) == std::vector<std::string>{});
}

TEST_CASE("a folder that was found is opened once, and no link leads to one", "[engine][file]") {
  const TempFolder to, outside;
  fs::create_directories(to / "a/b");
  fs::create_directory_symlink(outside.path(), to / "link");
  write_file(to / "file", "x");
  const Fd root{::open(to.path().c_str(), O_RDONLY | O_DIRECTORY)};
  FolderCache folders{root.get()};
  CHECK(folders.open("", false) == root.get());
  const int folder = folders.open("a/b", false);
  CHECK(is_same_inode(root.get(), "a/b", folder));
  fs::rename(to / "a", to / "c");
  CHECK(folders.open("a/b", false) == folder);
  const auto errno_of = [&](const std::string& path) {
    return folders.open(path, false) < 0 ? errno : 0;
  };
  for (const std::string path : {"a", "none/at/all"}) CHECK(errno_of(path) == ENOENT);
  for (const std::string path : {"link", "file"}) CHECK(errno_of(path) == ENOTDIR);
  CHECK(errno_of("link/deeper") == ELOOP);
  folders.close();
  CHECK(errno_of("a/b") == ENOENT);
  CHECK(folders.open("c/b", false) >= 0);
}
