// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A descriptor that becomes readable when the user wants to stop, for waits without a descriptor of
// their own. Any thread.
#pragma once

#include <poll.h>

#include "engine/base/units.hpp"

namespace onehop::p2p {

/// is_stopped waits for `span`, or until `stop_fd` is readable (true). -1: never. Syscall: poll.
[[nodiscard]] inline bool is_stopped(int stop_fd, Nanos span) {
  pollfd fd{stop_fd, POLLIN, 0};
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(span).count();
  return ::poll(&fd, 1, static_cast<int>(milliseconds)) > 0 && (fd.revents & POLLIN) != 0;
}

}  // namespace onehop::p2p
