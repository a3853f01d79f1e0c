// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Feed: an observer's end of the local socket. Owns the descriptor. Any one thread.
#pragma once

#include <string>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/base/units.hpp"
#include "tools/onehop/watch/telemetry.hpp"

namespace onehop::watch {

class Feed {
 public:
  /// open connects to the transfer's socket; it refuses a process of another user unless this one
  /// is root's. Syscalls: socket, connect, getsockopt.
  [[nodiscard]] static Result<Feed> open(const std::string& socket);

  /// read takes what has come and adds whole messages to `messages`, without waiting. False: the
  /// transfer's process has closed its end. Syscalls: recv.
  [[nodiscard]] Result<bool> read(std::vector<Message>& messages);

  /// wait_first waits for the first message, at most `patience`. Error timed_out: the process does
  /// not answer.
  [[nodiscard]] Result<Message> wait_first(Nanos patience);

  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  explicit Feed(Fd fd) : fd_{std::move(fd)} {}
  Fd fd_;
  std::string pending_;  // at most one unfinished line
};

}  // namespace onehop::watch
