// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// start_thread: a thread, or the Error that says which one the system refused. std::thread throws,
// and on a thread or in a coroutine whose caller expects no exception that ends the program. Set-up
// only; any thread.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "engine/base/result.hpp"

namespace onehop {

/// thread_error: `attempt` is "start the engine thread"; the system's limits on processes and
/// memory refuse threads.
[[nodiscard]] Error thread_error(std::string attempt, int errno_value);

/// start_thread runs `body` on a thread of its own, a std::jthread where it can be asked to stop.
/// `name` is for the error: "engine".
template <class Thread = std::thread, class Body>
[[nodiscard]] Result<Thread> start_thread(const char* name, Body&& body) {
  try {
    return Thread{std::forward<Body>(body)};
  } catch (const std::system_error& refused) {
    return thread_error("start the " + std::string{name} + " thread", refused.code().value());
  }
}

}  // namespace onehop
