// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/process/run_tool.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>

#include "engine/base/fd.hpp"

namespace onehop::lab {

namespace {

struct Pipe {
  Fd read, write;
};

Result<Pipe> open_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error(ExitCode::internal_error, "open a pipe");
  return Pipe{Fd{ends[0]}, Fd{ends[1]}};
}

// drain reads both pipes until both are closed, so that a program that writes much to one of them
// cannot get stuck.
void drain(Pipe& out, Pipe& err, std::string& out_text, std::string& err_text) {
  std::array<pollfd, 2> watched{{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
  std::array<char, 4096> bytes;
  while (watched[0].fd >= 0 || watched[1].fd >= 0) {
    if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
    for (pollfd& one : watched) {
      if (one.fd < 0 || one.revents == 0) continue;
      const ssize_t n = ::read(one.fd, bytes.data(), bytes.size());
      if (n > 0)
        (&one == &watched[0] ? out_text : err_text)
            .append(bytes.data(), static_cast<std::size_t>(n));
      if (n == 0 || (n < 0 && errno != EINTR)) one.fd = -1;
    }
  }
}

}  // namespace

Result<std::string> run_tool(const Arguments& arguments) {
  std::string attempt;
  for (const std::string& argument : arguments) attempt += (attempt.empty() ? "" : " ") + argument;
  ONEHOP_TRY(out, open_pipe());
  ONEHOP_TRY(err, open_pipe());
  ONEHOP_TRY(pid,
             spawn_program(arguments, {.output = out.write.get(),
                                       .errors = err.write.get(),
                                       .hint = "Install iproute2 and ethtool (tools/bootstrap)"}));
  out.write.close();
  err.write.close();
  std::string out_text, err_text;
  drain(out, err, out_text, err_text);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return out_text;
  while (!err_text.empty() && err_text.back() == '\n') err_text.pop_back();
  for (char& letter : err_text)
    if (letter == '\n') letter = ' ';
  if (err_text.empty()) err_text = "it ended with status " + std::to_string(status);
  return Error{ExitCode::io_unavailable, attempt, err_text, ""};
}

}  // namespace onehop::lab
