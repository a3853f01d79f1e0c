// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/process/command_process.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "engine/base/units.hpp"
#include "tools/labs/lab/process/netns.hpp"

namespace onehop::lab {

namespace {

// Too low: a receiver is cut off while it writes its journal. Too high: a command that ignores
// signals holds the lab.
constexpr int end_patience_seconds = 10;
constexpr int not_found_code = 127;
constexpr int not_executable_code = 126;

[[noreturn]] void be_command(const std::string& host, const std::vector<std::string>& command,
                             const sigset_t& mask, pid_t parent) {
  // A lab whose parent was killed has no one to end the command; the kernel then does it.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(not_executable_code);
  const Result<void> moved = host.empty() ? success() : become_host(host);
  if (moved.has_error()) {
    std::fprintf(stderr, "onehop lab: %s\n", moved.error().message().c_str());
    ::_exit(not_executable_code);
  }
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  const Error error = exec_command(command);
  std::fprintf(stderr, "onehop lab: %s\n", error.message().c_str());
  ::_exit(error.errno_value == ENOENT ? not_found_code : not_executable_code);
}

}  // namespace

CommandSignals::CommandSignals() noexcept {
  sigemptyset(&blocked_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&blocked_, number);
  ::sigprocmask(SIG_BLOCK, &blocked_, &before_);
}

CommandSignals::~CommandSignals() {
  // What came meanwhile has been acted upon; delivered now, it would kill us before the exit code
  // is returned.
  const timespec none{};
  while (::sigtimedwait(&blocked_, nullptr, &none) > 0) {
  }
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Result<CommandProcess> CommandProcess::start(const std::string& host,
                                             const std::vector<std::string>& command,
                                             const CommandSignals& signals) {
  const pid_t parent = ::getpid();
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(ExitCode::internal_error, "start " + command.front());
  if (pid == 0) be_command(host, command, signals.before(), parent);
  return CommandProcess{pid};
}

Result<CommandProcess> CommandProcess::start_function(const std::function<int()>& body,
                                                      const CommandSignals& signals) {
  const pid_t parent = ::getpid();
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(ExitCode::internal_error, "start a process");
  if (pid > 0) return CommandProcess{pid};
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(not_executable_code);
  ::sigprocmask(SIG_SETMASK, &signals.before(), nullptr);
  const int code = body();
  std::fflush(nullptr);
  ::_exit(code);
}

int CommandProcess::wait(const CommandSignals& signals) {
  bool is_ending = false;
  for (;;) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    siginfo_t info{};
    const timespec patience{end_patience_seconds, 0};
    const int number = is_ending ? ::sigtimedwait(&signals.blocked(), &info, &patience)
                                 : ::sigwaitinfo(&signals.blocked(), &info);
    if (number < 0 && errno == EAGAIN) ::kill(pid_, SIGKILL);
    if (number != SIGINT && number != SIGTERM && number != SIGHUP) continue;
    is_ending = true;
    const bool is_from_terminal = number == SIGINT && info.si_code == SI_KERNEL;
    if (!is_from_terminal) ::kill(pid_, number);
  }
}

Error exec_command(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  return errno_error(ExitCode::usage, "run " + command.front(),
                     "Behind -- write a program and its arguments");
}

}  // namespace onehop::lab
