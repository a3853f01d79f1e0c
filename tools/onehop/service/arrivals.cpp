// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/service/arrivals.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/onehop/confine/helper_process.hpp"

namespace onehop::tool {

namespace {

constexpr std::size_t message_bytes_max = 32 * 1024;  // paths of 4096 bytes, escaped

/// `values` ends with a zero of its own behind its `bytes`.
void run_program(const std::string& program, const char* values, std::size_t bytes) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const char* const end = values + bytes;
    for (const char* const name : Arrivals::names) {
      static_cast<void>(::setenv(name, values, 1));
      values = std::min(values + std::strlen(values) + 1, end);
    }
    char* const words[] = {const_cast<char*>(program.c_str()), nullptr};
    ::execv(program.c_str(), words);
    std::perror(program.c_str());
    ::_exit(127);
  }
  int status = 0;
  while (pid > 0 && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  const std::string how = pid < 0               ? "it could not be started"
                          : WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                                : fmt::format("{}", WEXITSTATUS(status));
  std::fputs(fmt::format("onehop recv: run '{}': it ended with {}. Look at what it says above\n",
                         program, how)
                 .c_str(),
             stderr);
}

void serve(const Fd& socket, const std::string& program) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ})
    (void)std::signal(number, SIG_DFL);
  // What a unit gives for AF_XDP (AmbientCapabilities=) is not the program's.
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  // Standard output has JSON lines: what the program prints goes beside what we say.
  if (const Fd null{::open("/dev/null", O_RDONLY | O_CLOEXEC)}; null.is_open())
    (void)::dup2(null.get(), STDIN_FILENO);
  (void)::dup2(STDERR_FILENO, STDOUT_FILENO);
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "ONEHOP_CODE"})
    (void)::unsetenv(name);
  std::array<char, message_bytes_max + 1> values{};
  for (;;) {
    const ssize_t got = ::recv(socket.get(), values.data(), message_bytes_max, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    values[static_cast<std::size_t>(got)] = '\0';
    run_program(program, values.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<std::unique_ptr<Arrivals>> Arrivals::start(const std::string& program) {
  const std::string attempt = "run '" + program + "' after each session";
  struct stat status {};
  if (::access(program.c_str(), X_OK) != 0 || ::stat(program.c_str(), &status) != 0)
    return errno_error(ExitCode::local_file_error, attempt,
                       "Name a program that this user may run");
  if (!S_ISREG(status.st_mode))
    return Error{ExitCode::local_file_error, attempt, "it is no file",
                 "Name a program that this user may run"};
  ONEHOP_TRY(helper,
             confine::start_helper("onehop-arrivals", [&](Fd socket) { serve(socket, program); }));
  return std::unique_ptr<Arrivals>{new Arrivals{std::move(helper.socket)}};
}

Result<void> Arrivals::run(const std::array<std::string, names.size()>& values) const {
  std::string message;
  for (const std::string& value : values) message += value + '\0';
  if (message.size() <= message_bytes_max &&
      ::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
    return success();
  return errno_error(ExitCode::local_file_error, "run the program of --on-received",
                     "It runs once after each session, one after the other: let it end sooner");
}

}  // namespace onehop::tool
