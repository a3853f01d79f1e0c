// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The most memory that this process had, by the kernel's own account. For tests.
#pragma once

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

namespace onehop::test {

/// peak_kib is VmHWM; starting anew sets it to what is resident now (proc(5), clear_refs).
inline std::size_t peak_kib() {
  std::ifstream file{"/proc/self/status"};
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6));
  FAIL("no VmHWM in /proc/self/status");
  return 0;
}
inline void start_peak_anew() {
  std::ofstream file{"/proc/self/clear_refs"};
  file << 5 << std::flush;
  REQUIRE(file);
}

}  // namespace onehop::test
