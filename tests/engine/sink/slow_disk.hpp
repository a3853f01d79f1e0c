// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// SlowDisk: the slow-disk file system, mounted for as long as the object lives. Needs root for the
// mount.
#pragma once

#include <signal.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/engine/sink/prepared_sink.hpp"

namespace onehop::sink::test {

namespace fs = std::filesystem;

/// One run of onehop-slow-disk; ends, and unmounts, with the object.
class SlowDisk {
 public:
  SlowDisk(const fs::path& backing, const fs::path& mount_point, std::vector<std::string> options)
      : mount_{mount_point} {
    // Where this ends the program, a disk would stay mounted, and its server would live on.
    (void)io_kind_under_test();
    const char* program = std::getenv("ONEHOP_SLOW_DISK");
    if (program == nullptr || ::access("/dev/fuse", R_OK | W_OK) != 0 || ::geteuid() != 0) return;
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) {
      std::vector<std::string> words{program, backing.string(), mount_point.string()};
      words.insert(words.end(), options.begin(), options.end());
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      ::execv(program, arguments.data());
      ::_exit(127);
    }
    constexpr long fuse_magic = 0x65735546;  // linux/magic.h FUSE_SUPER_MAGIC
    struct statfs status {};
    for (int i = 0; i < 500 && !is_mounted_; ++i, ::usleep(10'000))
      is_mounted_ = ::statfs(mount_.c_str(), &status) == 0 && status.f_type == fuse_magic;
  }
  ~SlowDisk() {
    if (child_ <= 0) return;
    ::kill(child_, SIGTERM);
    int status = 0;
    ::waitpid(child_, &status, 0);
    ::umount2(mount_.c_str(), MNT_DETACH);  // in case it died before it could
  }
  SlowDisk(const SlowDisk&) = delete;
  SlowDisk& operator=(const SlowDisk&) = delete;
  [[nodiscard]] bool is_mounted() const { return is_mounted_; }

 private:
  fs::path mount_;
  pid_t child_ = -1;
  bool is_mounted_ = false;
};

/// Ends the program as skipped; the runner counts that as neither passed nor failed.
[[noreturn]] inline void skip(const std::string& reason) {
  std::fprintf(stderr, "SKIPPED: %s\n", reason.c_str());
  std::_Exit(77);
}
inline constexpr const char* fuse_reason =
    "needs root, /dev/fuse and onehop-slow-disk (ONEHOP_SLOW_DISK)";

}  // namespace onehop::sink::test
