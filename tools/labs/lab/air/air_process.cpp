// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/air/air_process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <thread>

#include "engine/base/fd.hpp"
#include "engine/base/system/descriptors.hpp"

namespace onehop::lab::air {

namespace {

// Above what the machine does, below the kernel's own real-time threads (50).
constexpr int priority = 20;
constexpr Nanos end_patience = 3s, end_poll = 5ms;

volatile std::sig_atomic_t stop_requested = 0;
void request_stop(int) { stop_requested = 1; }

void take_signals() {
  struct sigaction action {};
  action.sa_handler = request_stop;
  ::sigaction(SIGTERM, &action, nullptr);
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  ::sigprocmask(SIG_SETMASK, &term, nullptr);
  ::sigprocmask(SIG_UNBLOCK, &term, nullptr);
}

// take_a_core: the last one, for programs tend to start on the first. What is refused shows as
// lateness in the report.
void take_a_core() {
  cpu_set_t allowed, last;
  CPU_ZERO(&last);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (int i = CPU_SETSIZE - 1; i >= 0; --i) {
      if (!CPU_ISSET(i, &allowed)) continue;
      CPU_SET(i, &last);
      (void)::sched_setaffinity(0, sizeof last, &last);
      break;
    }
  }
  const sched_param param{.sched_priority = priority};
  (void)::sched_setscheduler(0, SCHED_FIFO, &param);
  (void)::mlockall(MCL_CURRENT | MCL_FUTURE);
}

void write_all(int fd, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
    if (n <= 0) return;
    at += static_cast<std::size_t>(n);
  }
}

Result<Fd> open_report(const std::string& path) {
  Fd fd{::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644)};
  if (!fd.is_open() || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return errno_error(ExitCode::local_file_error, "hold " + path);
  return fd;
}

// keep_only closes what was inherited, but for the standard streams and `kept`.
void keep_only(Fd& kept) {
  constexpr int place = STDERR_FILENO + 1;
  if (kept.get() != place) kept = Fd{::dup3(kept.get(), place, O_CLOEXEC)};
  close_descriptors_but(place);
}

// live is the control process. It says "+" into the pipe when the link is ready, or what went
// wrong.
[[noreturn]] void live(const AirProcessOptions& options, Fd ready) {
  ::setsid();
  keep_only(ready);  // the lab's lock among others, which would be held as long as we live
  take_signals();
  if (options.ends_with_us) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::prctl(PR_SET_NAME, "onehop-lab-air");
  Result<Fd> report = open_report(options.report);
  if (report.has_error()) {
    write_all(ready.get(), report.error().message());
    ::_exit(1);
  }
  write_all(report.value().get(), std::to_string(::getpid()) + "\n");
  Result<AirPlayer> player = AirPlayer::open(options.player);
  if (player.has_error()) {
    write_all(ready.get(), player.error().message());
    ::_exit(1);
  }
  const Fd nothing{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) (void)::dup2(nothing.get(), fd);
  take_a_core();
  write_all(ready.get(), "+");
  ready.close();
  player.value().run(stop_requested);
  const sched_param param{.sched_priority = 0};
  (void)::sched_setscheduler(0, SCHED_OTHER,
                             &param);  // the prediction in the report must not hold a core
  write_all(report.value().get(), player.value().report());
  ::_exit(0);
}

}  // namespace

Result<void> start_air(const AirProcessOptions& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error(ExitCode::internal_error, "open a pipe");
  Fd read_end{ends[0]}, write_end{ends[1]};
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(ExitCode::internal_error, "start the airtime control process");
  if (pid == 0) {
    read_end.close();
    live(options, std::move(write_end));
  }
  write_end.close();
  std::string said;
  std::array<char, 512> bytes;
  for (;;) {
    const ssize_t n = ::read(read_end.get(), bytes.data(), bytes.size());
    if (n > 0)
      said.append(bytes.data(), static_cast<std::size_t>(n));
    else if (n == 0 || errno != EINTR)
      break;
  }
  if (said == "+") return success();
  (void)::waitpid(pid, nullptr, 0);
  return Error{ExitCode::io_unavailable, "start the airtime control process",
               said.empty() ? "it died" : said, ""};
}

AirEnd stop_air(const std::string& report) {
  AirEnd end;
  const Fd fd{::open(report.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  if (!fd.is_open()) return end;
  pid_t pid = 0;
  std::ifstream{report} >> pid;
  // The lock says whether the process lives; its number alone might be somebody else's by now.
  const auto is_alive = [&fd] {
    return ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  };
  end.was_alive = pid > 0 && is_alive();
  if (end.was_alive) ::kill(pid, SIGTERM);
  for (Nanos waited{0}; end.was_alive && waited < end_patience && is_alive(); waited += end_poll)
    std::this_thread::sleep_for(end_poll);
  if (end.was_alive && is_alive()) ::kill(pid, SIGKILL);
  (void)::waitpid(pid, nullptr, WNOHANG);
  std::ostringstream text;
  text << std::ifstream{report}.rdbuf();
  const std::size_t line_end = text.str().find('\n');
  if (line_end != std::string::npos) end.report = text.str().substr(line_end + 1);
  (void)::unlink(report.c_str());
  return end;
}

}  // namespace onehop::lab::air
