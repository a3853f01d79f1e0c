// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/ends/board.hpp"

#include <sys/resource.h>

#include <thread>

#include "engine/base/time.hpp"

namespace onehop::bench {

namespace {
constexpr Nanos release_patience = 5s;
constexpr Nanos release_poll = 1ms;
}  // namespace

void post_usage(Moved& moved) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto microseconds = [](const timeval& tv) {
    return static_cast<std::uint64_t>(tv.tv_sec) * 1'000'000 +
           static_cast<std::uint64_t>(tv.tv_usec);
  };
  moved.user_us = microseconds(usage.ru_utime);
  moved.system_us = microseconds(usage.ru_stime);
  moved.voluntary_switches = static_cast<std::uint64_t>(usage.ru_nvcsw);
  moved.at_ns = monotonic_now().time_since_epoch().count();
}

void post_error(Board& board, const Error& error) {
  write_text(board.error, error.message());
  board.error_code = static_cast<std::uint32_t>(error.code);
  board.state.store(EndState::failed,
                    std::memory_order_release);  // acquire in the measuring process
}

void wait_release(const Board& board) {
  for (Nanos waited{0};
       waited < release_patience && !board.is_released.load(std::memory_order_acquire);
       waited += release_poll)
    std::this_thread::sleep_for(release_poll);
}

}  // namespace onehop::bench
