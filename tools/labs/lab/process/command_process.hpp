// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The command that `onehop lab run` runs: one child on a lab host, and the signals meanwhile.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace onehop::lab {

/// CommandSignals blocks SIGINT, SIGTERM, SIGHUP and SIGCHLD for its lifetime; wait() takes them
/// from the queue.
class CommandSignals {
 public:
  CommandSignals() noexcept;
  CommandSignals(const CommandSignals&) = delete;
  CommandSignals& operator=(const CommandSignals&) = delete;
  ~CommandSignals();

  [[nodiscard]] const sigset_t& blocked() const noexcept { return blocked_; }
  [[nodiscard]] const sigset_t& before() const noexcept { return before_; }

 private:
  sigset_t blocked_{}, before_{};
};

class CommandProcess {
 public:
  /// start forks and execs, on a host or (empty name) in the namespace of this process. The process
  /// must have one thread at that time.
  [[nodiscard]] static Result<CommandProcess> start(const std::string& host,
                                                    const std::vector<std::string>& command,
                                                    const CommandSignals& signals);

  /// start_function forks and runs `body` in the namespace of this process; its value is the exit
  /// code. As above otherwise.
  [[nodiscard]] static Result<CommandProcess> start_function(const std::function<int()>& body,
                                                             const CommandSignals& signals);

  /// wait returns the exit code, or 128 + the signal that ended the command. A signal to us ends
  /// the command: it is handed on (but for a Ctrl-C, which the terminal has sent to the command as
  /// well), and SIGKILL follows ten seconds later.
  [[nodiscard]] int wait(const CommandSignals& signals);

 private:
  explicit CommandProcess(pid_t pid) noexcept : pid_{pid} {}
  pid_t pid_;
};

/// exec_command replaces this process. It returns only where that fails.
[[nodiscard]] Error exec_command(const std::vector<std::string>& command);

}  // namespace onehop::lab
