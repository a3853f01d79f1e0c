// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/thread.hpp"

namespace onehop {

Error thread_error(std::string attempt, int errno_value) {
  return errno_error(
      ExitCode::io_unavailable, std::move(attempt),
      "Raise the limits on processes (ulimit -u) and memory (ulimit -v), or end other programs",
      errno_value);
}

}  // namespace onehop
