// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// start_thread: a thread, or the Error that says which one the system refused. std::thread throws,
// which ends the program where the caller expects no exception. Set-up only; any thread.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "engine/base/result.hpp"

namespace onehop {

/// thread_error: `attempt` is "start the engine thread".
[[nodiscard]] inline Error thread_error(std::string attempt, int errno_value) {
  return errno_error(
      ExitCode::io_unavailable, std::move(attempt),
      "Raise the limits on processes (ulimit -u) and memory (ulimit -v), or end other programs",
      errno_value);
}

/// start_thread runs `body`; a std::jthread can be stopped. `name`: "engine", for the error.
template <class Thread = std::thread, class Body>
[[nodiscard]] Result<Thread> start_thread(const char* name, Body&& body) {
  try {
    return Thread{std::forward<Body>(body)};
  } catch (const std::system_error& refused) {
    return thread_error("start the " + std::string{name} + " thread", refused.code().value());
  }
}

}  // namespace onehop
