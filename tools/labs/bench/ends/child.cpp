// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/ends/child.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <iostream>
#include <thread>

#include "tools/labs/lab/process/command_process.hpp"
#include "tools/labs/lab/process/netns.hpp"

namespace onehop::bench {

namespace {

constexpr int cannot_start_code = 126;
constexpr Nanos reap_poll = 1ms;

void be_pinned(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) == 0) return;
  std::fprintf(stderr, "onehop bench: %s\n",
               errno_error(ExitCode::usage, "run on CPU " + std::to_string(cpu)).message().c_str());
  ::_exit(static_cast<int>(ExitCode::usage));
}

/// What a child does before its work: it dies with its parent, and starts when it is counted.
void begin(pid_t parent, int gate, const std::string& host, std::optional<int> cpu) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(cannot_start_code);
  const Result<void> moved = host.empty() ? success() : lab::become_host(host);
  if (moved.has_error()) {
    std::fprintf(stderr, "onehop bench: %s\n", moved.error().message().c_str());
    ::_exit(cannot_start_code);
  }
  if (cpu) be_pinned(*cpu);
  char byte = 0;
  if (::read(gate, &byte, 1) != 1) ::_exit(cannot_start_code);
}

}  // namespace

Result<Child> Child::start(const std::string& host, std::optional<int> cpu, bool is_counted,
                           const std::function<int()>& body) {
  std::array<int, 2> gate{};
  if (::pipe2(gate.data(), O_CLOEXEC) != 0)
    return errno_error(ExitCode::internal_error, "make a pipe");
  Fd read_end{gate[0]}, write_end{gate[1]};
  const pid_t parent = ::getpid();
  std::cout.flush();
  std::fflush(nullptr);
  Child child;
  child.pid_ = ::fork();
  if (child.pid_ < 0) {
    child.has_ended_ = true;
    return errno_error(ExitCode::internal_error, "start a process");
  }
  if (child.pid_ == 0) {
    write_end.close();
    begin(parent, read_end.get(), host, cpu);
    (void)::signal(SIGPIPE, SIG_IGN);  // DPDK's drivers write to sockets of peers that ended
    const int code = body();
    std::fflush(nullptr);
    ::_exit(code);
  }
  if (is_counted) {
    auto counters = PerfCounters::open(child.pid_);
    if (counters.has_value())
      child.counters_ = std::move(counters).value();
    else
      child.counts_missing_ = "not available: " + counters.error().cause;
  }
  if (::write(write_end.get(), "", 1) != 1)
    return errno_error(ExitCode::internal_error, "start a process");
  return child;
}

Result<Child> Child::start_program(const std::string& host, std::optional<int> cpu, bool is_counted,
                                   const std::vector<std::string>& command) {
  Fd output{::memfd_create("onehop-bench-output", MFD_CLOEXEC)};
  if (!output.is_open())
    return errno_error(ExitCode::internal_error, "keep the output of " + command.front());
  auto started = start(host, cpu, is_counted, [&]() -> int {
    ::dup2(output.get(), STDOUT_FILENO);
    const Error error = lab::exec_command(command);
    std::fprintf(stderr, "onehop bench: %s\n", error.message().c_str());
    return cannot_start_code;
  });
  if (started.has_value()) started.value().output_ = std::move(output);
  return started;
}

Child::Child(Child&& other) noexcept
    : pid_{other.pid_},
      has_ended_{std::exchange(other.has_ended_, true)},
      exit_code_{other.exit_code_},
      cpu_time_{other.cpu_time_},
      counters_{std::move(other.counters_)},
      counts_missing_{std::move(other.counts_missing_)},
      output_{std::move(other.output_)} {}

Child::~Child() {
  if (has_ended_) return;
  ::kill(pid_, SIGKILL);
  (void)reap(0);
}

bool Child::reap(int flags) {
  if (has_ended_) return true;
  int status = 0;
  rusage usage{};
  if (::wait4(pid_, &status, flags, &usage) != pid_) return false;
  has_ended_ = true;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const auto seconds = [](const timeval& tv) {
    return static_cast<double>(tv.tv_sec) + static_cast<double>(tv.tv_usec) / 1e6;
  };
  cpu_time_ = {seconds(usage.ru_utime), seconds(usage.ru_stime),
               static_cast<std::uint64_t>(usage.ru_nvcsw)};
  return true;
}

bool Child::is_running() { return !reap(WNOHANG); }

bool Child::wait(Nanos patience) {
  for (Nanos waited{0}; !reap(WNOHANG); waited += reap_poll) {
    if (waited >= patience) return false;
    std::this_thread::sleep_for(reap_poll);
  }
  return true;
}

void Child::end(int signal_number) noexcept {
  if (!has_ended_) ::kill(pid_, signal_number);
}

std::optional<PerfCounters::Counts> Child::counts() const {
  return counters_ ? counters_->read() : std::nullopt;
}

std::string Child::output() {
  std::string text;
  std::array<char, 4096> piece;
  (void)::lseek(output_.get(), 0, SEEK_SET);
  for (ssize_t got = 0; (got = ::read(output_.get(), piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(got));
  return text;
}

}  // namespace onehop::bench
