// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a test case needs of the kernel and some systems lack: an emulator of single programs
// (qemu-user, tools/distros), an old kernel, a sandbox. Each is asked for by itself.
#pragma once

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <string>

#include "engine/base/fd.hpp"
#include "engine/port/mem_info.hpp"

/// The rest of a test case is left out where `has` is false; tools/distros lists it by this line.
#define ONEHOP_NEEDS(has, what)  \
  do {                           \
    if (!(has)) {                \
      WARN("skipped: " << what); \
      SUCCEED();                 \
      return;                    \
    }                            \
  } while (false)

namespace onehop::test {

/// has_mem_info: SO_MEMINFO says what a socket holds. (qemu-user takes the call and gives zeros.)
inline bool has_mem_info() {
  const Fd socket{::socket(AF_INET, SOCK_DGRAM, 0)};
  return read_mem_info(socket.get()).rcvbuf_bytes > 0;
}

/// has_wifi_status: what became of a frame can be asked for.
inline bool has_wifi_status() {
  const Fd socket{::socket(AF_INET, SOCK_DGRAM, 0)};
  const int on = 1;
  return ::setsockopt(socket.get(), SOL_SOCKET, SO_WIFI_STATUS, &on, sizeof on) == 0;
}

inline bool has_seccomp() { return ::prctl(PR_GET_SECCOMP) == 0; }

/// is_heap_told: mallinfo2() knows this build's allocator; that of a sanitizer, which keeps what
/// was freed, it does not.
inline bool is_heap_told() {
  const std::size_t before = ::mallinfo2().uordblks;
  void* volatile block = std::malloc(10'000);
  const bool is_told = ::mallinfo2().uordblks > before;
  std::free(block);
  return is_told;
}

/// has_populate: memory can be asked for together with its pages.
inline bool has_populate() {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const at = ::mmap(nullptr, page, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) return false;
  unsigned char resident = 0;
  const bool has = ::mincore(at, page, &resident) == 0 && (resident & 1) != 0;
  ::munmap(at, page);
  return has;
}

/// has_memory_limit: RLIMIT_AS refuses what is beyond it.
inline bool has_memory_limit() {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    const bool is_limited =
        ::setrlimit(RLIMIT_AS, &none) == 0 &&
        ::mmap(nullptr, 64 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
    ::_exit(is_limited ? 0 : 1);
  }
  int status = 1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

/// has_mount_ids: a mount can be told from the folder below it.
inline bool has_mount_ids() {
  struct statx root {};
  return ::statx(AT_FDCWD, "/proc/self", 0, STATX_MNT_ID, &root) == 0 && root.stx_mnt_id != 0;
}

/// has_page_flags: /proc/self/smaps has the flags of its mappings.
inline bool has_page_flags() {
  std::ifstream maps{"/proc/self/smaps"};
  for (std::string line; std::getline(maps, line);)
    if (line.starts_with("VmFlags:") && line.find(" rd") != std::string::npos) return true;
  return false;
}

}  // namespace onehop::test
