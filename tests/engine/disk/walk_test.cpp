// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   where openat2 is missing, a walk opens what openat2 opens, and nothing else.
// Method: each path of a tree with links of all kinds is opened both ways; then a folder is
//         exchanged for a link that leads out, all the time.
// Bounds: the same inode, or the same errno; never a file from outside.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "engine/disk/walk.hpp"
#include "tests/engine/sink/file_support.hpp"

using namespace onehop;
using namespace onehop::disk;
using namespace onehop::sink::test;

namespace {

Fd by_kernel(int folder, const std::string& path, int flags, Links links) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  if ((flags & O_CREAT) != 0) how.mode = 0600;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  if (links == Links::none) {
    how.flags |= O_NOFOLLOW;
    how.resolve |= RESOLVE_NO_SYMLINKS;
  }
  return Fd{static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how))};
}

/// What an open gave: which file, or why none.
struct Opened {
  ino_t inode = 0;
  int errno_value = 0;
  bool operator==(const Opened&) const = default;
};

Opened seen(const Fd& fd) {
  const int errno_value = errno;
  struct stat status {};
  if (!fd.is_open()) return {.errno_value = errno_value};
  REQUIRE(::fstat(fd.get(), &status) == 0);
  return {.inode = status.st_ino};
}

void make_tree(const fs::path& top) {
  fs::create_directories(top / "a/b");
  fs::create_directories(top / "closed/in");
  write_file((top / "a/b/file").string(), "inside");
  write_file((top / "closed/in/file").string(), "inside");
  const std::pair<const char*, const char*> links[] = {{"b", "a/same"},
                                                       {"b/file", "a/short"},
                                                       {"../a/b", "a/round"},
                                                       {"../../a/b", "a/out"},
                                                       {"/etc", "absolute"},
                                                       {"a/same/../short", "winding"},
                                                       {"loop", "loop"},
                                                       {"missing", "dangling"},
                                                       {"a/b/", "slash"},
                                                       {"a/b/file/", "not"},
                                                       {"..", "a/b/up"},
                                                       {"a/b/up/b/up/same/file", "long"},
                                                       {".", "here"},
                                                       {"/proc/self/cwd", "a/magic"},
                                                       {"a/round/../../a/b/file", "far"}};
  for (const auto& [target, name] : links) fs::create_symlink(target, top / name);
}

}  // namespace

TEST_CASE("a walk opens what openat2 opens") {
  if (!has_openat2()) {
    WARN("not compared: this kernel or sandbox has no openat2");
    return;
  }
  const TempFolder folder;
  make_tree(folder / "top");
  write_file((folder / "secret").string(), "outside");
  const Fd top{::open((folder / "top").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  const std::string paths[] = {"",
                               ".",
                               "..",
                               "/",
                               "/etc/passwd",
                               "a",
                               "a/",
                               "a//b",
                               "a/./b/.",
                               "a/b/file",
                               "a/b/file/",
                               "a/b/file/x",
                               "a/../a/b",
                               "a/../../secret",
                               "../secret",
                               "./..",
                               "a/b/..",
                               "missing",
                               "missing/x",
                               "a/same",
                               "a/same/",
                               "a/same/file",
                               "a/short",
                               "a/short/",
                               "a/round/file",
                               "a/out",
                               "a/out/file",
                               "absolute",
                               "absolute/passwd",
                               "winding",
                               "loop",
                               "loop/x",
                               "dangling",
                               "slash",
                               "slash/file",
                               "not",
                               "a/b/up",
                               "a/b/up/short",
                               "long",
                               "here",
                               "here/a/b/file",
                               "a/magic",
                               "a/magic/x",
                               "far",
                               "closed/in/file",
                               std::string(300, 'n'),
                               std::string(300, 'n') + "/x",
                               std::string(5000, 'n')};
  for (const std::string& path : paths)
    for (const Links links : {Links::none, Links::beneath})
      for (const int flags : {O_PATH, O_RDONLY, O_RDONLY | O_DIRECTORY, O_PATH | O_DIRECTORY}) {
        INFO(path.substr(0, 60) << ", flags " << flags << ", links " << static_cast<int>(links));
        const Opened there = seen(by_kernel(top.get(), path, flags, links));
        const Opened ours = seen(walk_beneath(top.get(), path, flags, 0, links));
        CHECK(std::pair{ours.inode, ours.errno_value} == std::pair{there.inode, there.errno_value});
      }
}

TEST_CASE("a walk makes a file where there is none, and never through a link") {
  const TempFolder folder;
  make_tree(folder / "top");
  const Fd top{::open((folder / "top").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  const int flags = O_RDWR | O_CREAT | O_EXCL;
  CHECK(walk_beneath(top.get(), "a/b/new", flags, 0600, Links::none).is_open());
  CHECK(fs::exists(folder / "top/a/b/new"));
  const std::pair<const char*, int> refused[] = {{"a/b/file", EEXIST}, {"a/same/new", ELOOP},
                                                 {"dangling", EEXIST}, {"absolute/new", ELOOP},
                                                 {"../new", EXDEV},    {"missing/new", ENOENT}};
  for (const auto& [path, errno_value] : refused) {
    INFO(path);
    CHECK(seen(walk_beneath(top.get(), path, flags, 0600, Links::none)).errno_value == errno_value);
  }
  CHECK_FALSE(fs::exists(folder / "new"));
}

// Threat A1.
TEST_CASE("a folder that is exchanged for a link leads no walk out") {
  const TempFolder folder;
  fs::create_directories(folder / "top/sub/deep");
  fs::create_directories(folder / "secret/deep");
  write_file((folder / "top/sub/deep/file").string(), "inside");
  write_file((folder / "secret/deep/file").string(), "outside");
  fs::create_symlink(folder / "secret", folder / "top/link");
  const Fd top{::open((folder / "top").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  const Opened outside = seen(Fd{::open((folder / "secret/deep/file").c_str(), O_RDONLY)});
  std::atomic<bool> is_over = false;
  std::thread other{[&] {
    while (!is_over)
      ::syscall(SYS_renameat2, top.get(), "sub", top.get(), "link", 2U /* RENAME_EXCHANGE */);
  }};
  int opened = 0, refused = 0, leaks = 0;
  for (int round = 0; round < 20'000; ++round)
    for (const Links links : {Links::none, Links::beneath}) {
      const Fd fd = walk_beneath(top.get(), "sub/deep/../deep/file", O_RDONLY, 0, links);
      (fd.is_open() ? opened : refused)++;
      if (fd.is_open() && seen(fd) == outside) ++leaks;
    }
  is_over = true;
  other.join();
  CHECK(leaks == 0);
  CHECK(opened > 0);
  CHECK(refused > 0);
}
