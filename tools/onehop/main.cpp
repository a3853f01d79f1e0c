// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include <csignal>
#include <cstdio>
#include <new>

#include "engine/base/memory.hpp"
#include "tools/onehop/command/commands.hpp"
#include "tools/onehop/laboratories.hpp"
#include "tools/onehop/memory.hpp"

int main(int argc, char** argv) {
  if (const auto code = onehop::tool::start_laboratory(argc, argv)) return static_cast<int>(*code);
  onehop::tool::end_where_memory_is_refused();
  // A file that grows past the limit (ulimit -f) is an error of that file, EFBIG.
  (void)std::signal(SIGXFSZ, SIG_IGN);
  try {
    return onehop::tool::run_program(argc, argv);
  } catch (const std::bad_alloc& refused) {
    const onehop::Error error = onehop::memory_error("run", refused);
    std::fprintf(stderr, "onehop: %s\n", error.message().c_str());
    return static_cast<int>(error.code);
  }
}
