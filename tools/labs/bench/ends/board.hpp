// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Board: one page that an end of a measured pair and the process that measures it share. The end
// writes what it has moved; the measuring process reads it, and says when to stop. For `bench port`
// it is also the flow control between the two ends: the sender reads the receiver's count there, so
// the flood is measured without a protocol.
#pragma once

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/base/result.hpp"

namespace onehop::bench {

enum class EndState : std::uint32_t { starting, ready, flowing, done, failed };

/// Moved: what an end has moved so far. Written by that end alone.
struct Moved {
  std::uint64_t bytes = 0;   ///< payload: accepted (receiving), given to the port (sending)
  std::uint64_t frames = 0;  ///< data frames likewise
  std::uint64_t frames_lost = 0;
  std::uint64_t wakeups = 0;  ///< returns from the port's wait
  std::uint64_t engine_syscalls = 0;
  std::uint64_t rate_ticks = 0;                                      ///< of the rate law
  std::uint64_t user_us = 0, system_us = 0, voluntary_switches = 0;  ///< getrusage of the end
  std::int64_t at_ns = 0;  ///< monotonic, when this was read
};

struct alignas(64) Board {
  // Written by the end.
  std::atomic<EndState> state{EndState::starting};
  std::atomic<std::uint32_t> answered{
      0};  // release after `moved` was written; acquire in the measuring process
  Moved moved;
  std::int64_t first_data_ns = 0;                                       // before `flowing`
  std::array<char, 32> io_used{}, io_mode{}, aead{}, law{}, file_io{};  // before `flowing`
  std::uint32_t frame_bytes = 0;
  std::uint32_t error_code = 0;
  std::array<char, 512> error{};  // before `failed`
  // Written by both ends of a flood, each its own.
  alignas(64) std::atomic<std::uint64_t> frames_sent{0};
  alignas(64) std::atomic<std::uint64_t> frames_received{0};
  // Written by the measuring process.
  alignas(64) std::atomic<std::uint32_t> asked{0};  // a growing number asks for `moved`
  std::atomic<bool> is_started{false}, is_stopping{false}, is_released{false};
};

template <std::size_t N>
void write_text(std::array<char, N>& to, std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), N - 1);
  std::memcpy(to.data(), text.data(), length);
  to[length] = '\0';
}

/// SharedBoard owns the page; a fork shares it.
class SharedBoard {
 public:
  SharedBoard() {
    void* page =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ONEHOP_CHECK(page != MAP_FAILED);
    board_ = new (page) Board;
  }
  SharedBoard(SharedBoard&& other) noexcept : board_{std::exchange(other.board_, nullptr)} {}
  SharedBoard& operator=(SharedBoard&&) = delete;
  ~SharedBoard() {
    if (board_ != nullptr) ::munmap(board_, sizeof(Board));
  }
  [[nodiscard]] Board& operator*() const noexcept { return *board_; }
  [[nodiscard]] Board* operator->() const noexcept { return board_; }

 private:
  Board* board_;
};

/// post_usage fills the process's own CPU time and the clock. Syscalls: getrusage, clock_gettime.
void post_usage(Moved& moved);
/// post_error says on the board why the end gave up.
void post_error(Board& board, const Error& error);
/// wait_release waits until the measuring process has read the threads of an end that is done, or
/// has gone (5 s).
void wait_release(const Board& board);

}  // namespace onehop::bench
