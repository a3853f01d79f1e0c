// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What this process was started with: output files begin with it. Written once, before threads.
#pragma once

#include <string>

namespace onehop::tool {

[[nodiscard]] inline std::string& command_line() {
  static std::string line;
  return line;
}

inline void remember_command_line(int argc, const char* const* argv) {
  for (int i = 0; i < argc; ++i) command_line() += (i == 0 ? "" : " ") + std::string{argv[i]};
}

}  // namespace onehop::tool
