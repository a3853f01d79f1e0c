// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// One fault of each kind that a sanitizer looks for, by name: planted heap|overflow|race. A build
// whose sanitizer sees nothing here proves nothing elsewhere: tests/sanitize/meson.build wants each
// of them to fail.
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>

int main(int argc, char** argv) {
  const char* const fault = argc > 1 ? argv[1] : "";
  if (std::strcmp(fault, "heap") == 0) {
    const auto bytes = std::make_unique<char[]>(16);
    volatile char* const first = bytes.get();
    std::printf("%d\n", first[16 + argc]);
  } else if (std::strcmp(fault, "overflow") == 0) {
    volatile int top = std::numeric_limits<int>::max();
    std::printf("%d\n", top + argc);
  } else if (std::strcmp(fault, "race") == 0) {
    int shared = 0;
    const auto count = [&shared] {
      for (int i = 0; i < 100'000; ++i) shared = shared + 1;
    };
    std::thread other{count};
    count();
    other.join();
    std::printf("%d\n", shared);
  }
  return 0;
}
