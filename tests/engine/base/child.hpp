// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// run_in_child runs code that is meant to stop the program, in a forked child, and tells how it
// ended and what it said.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

namespace onehop::test {

struct ChildEnd {
  int signal = 0;  ///< 0: it exited
  int status = 0;
  std::string said;  ///< its stderr
};

template <class Body>
ChildEnd run_in_child(Body body) {
  ChildEnd end;
  std::array<int, 2> pipe_fds{};
  if (::pipe(pipe_fds.data()) != 0) return {.status = -1, .said = "pipe failed"};
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe_fds[0]);
    ::dup2(pipe_fds[1], STDERR_FILENO);
    ::signal(SIGABRT, SIG_DFL);  // Catch2 handles it in the parent; here it must end the process
    body();
    ::_exit(0);
  }
  ::close(pipe_fds[1]);
  std::array<char, 512> buffer;
  for (ssize_t n; (n = ::read(pipe_fds[0], buffer.data(), buffer.size())) > 0;)
    end.said.append(buffer.data(), static_cast<std::size_t>(n));
  ::close(pipe_fds[0]);
  int wait_status = 0;
  ::waitpid(child, &wait_status, 0);
  end.signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
  end.status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
  return end;
}

}  // namespace onehop::test
