// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a test program without Catch's runner needs: one that must unshare before anything else, or
// that runs in the virtual machine. main returns `failures > 0`.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

namespace onehop::test {

inline int failures = 0;
#define EXPECT(condition)                                                \
  do {                                                                   \
    if (!(condition)) {                                                  \
      std::printf("FAILED %s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++onehop::test::failures;                                          \
    }                                                                    \
  } while (false)

/// run is false, and says so, where the shell's command fails.
inline bool run(const char* command) {
  const int rc = std::system(command);
  if (rc != 0) std::printf("'%s' ended with %d\n", command, WEXITSTATUS(rc));
  return rc == 0;
}

/// skip ends the program as meson's skipped tests end.
[[noreturn]] inline void skip(const char* reason) {
  std::printf("skipped: %s\n", reason);
  std::exit(77);
}

}  // namespace onehop::test
