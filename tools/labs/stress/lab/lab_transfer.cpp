// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/stress/lab/lab_transfer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <thread>
#include <utility>

#include "engine/base/units.hpp"
#include "tools/labs/lab/process/command_process.hpp"
#include "tools/labs/lab/process/netns.hpp"

namespace onehop::stress {

namespace {
constexpr Nanos patience = 20s, poll_interval = 1ms;
constexpr std::uint64_t flowing_bytes = 300'000;
constexpr std::size_t said_bytes_max = 600;

[[noreturn]] void be_child(const std::string& host, const std::vector<std::string>& command,
                           const std::string& output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const Result<void> moved = host.empty() ? success() : lab::become_host(host);
  const Error error = moved.has_error() ? moved.error() : lab::exec_command(command);
  std::fprintf(stderr, "onehop stress: %s\n", error.message().c_str());
  ::_exit(126);
}
}  // namespace

Result<Child> Child::start(const std::string& host, const std::vector<std::string>& command,
                           const std::string& output) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  Child child;
  child.output_ = output;
  child.pid_ = ::fork();
  if (child.pid_ < 0) return errno_error(ExitCode::internal_error, "start " + command.front());
  if (child.pid_ == 0) be_child(host, command, output, parent);
  return child;
}

Child::Child(Child&& other) noexcept
    : pid_{std::exchange(other.pid_, 0)}, code_{other.code_}, output_{std::move(other.output_)} {}
Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(code_, other.code_);
  std::swap(output_, other.output_);
  return *this;
}
Child::~Child() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  (void)::waitpid(pid_, nullptr, 0);
}

void Child::signal(int number) const noexcept {
  if (pid_ > 0) ::kill(pid_, number);
}

bool Child::poll() noexcept {
  int status = 0;
  if (pid_ <= 0) return true;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
  pid_ = 0;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

std::string Child::said() const {
  std::ifstream file{output_};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  return text.size() <= said_bytes_max ? text : text.substr(text.size() - said_bytes_max);
}

Result<LabTransfer> LabTransfer::start(const LabTransferOptions& options) {
  LabTransfer transfer;
  {
    ONEHOP_TRY(inside, lab::InNetns::enter(options.hosts.b));
    (void)inside;
    transfer.counters_ = Fd{::open("/proc/thread-self/net/dev", O_RDONLY | O_CLOEXEC)};
    if (!transfer.counters_.is_open())
      return errno_error(ExitCode::internal_error, "open /proc/net/dev of host b");
  }
  ONEHOP_TRY(receive, Child::start(options.hosts.b,
                                   {options.program, "recv", "--once", "--dir",
                                    options.folder + "/in", "--listen", lab::address_b4, "--io",
                                    options.io, "--on-exist", "overwrite", "--quiet"},
                                   options.folder + "/recv.txt"));
  transfer.receive_ = std::move(receive);
  std::vector<std::string> command{options.program, "send", options.file, "--to",
                                   lab::address_b4, "--io", options.io,   "--quiet"};
  if (!options.law.empty()) command.insert(command.end(), {"--law", options.law});
  ONEHOP_TRY(send, Child::start(options.hosts.a, command, options.folder + "/send.txt"));
  transfer.send_ = std::move(send);
  const std::uint64_t before = transfer.bytes_arrived();
  for (Nanos waited{0}; waited < patience; waited += poll_interval) {
    if (transfer.bytes_arrived() - before > flowing_bytes) return transfer;
    if (!transfer.is_running()) break;
    std::this_thread::sleep_for(poll_interval);
  }
  return Error{
      ExitCode::internal_error, "start a transfer in the lab", "no data flows",
      fmt::format("send said: {}recv said: {}", transfer.send_.said(), transfer.receive_.said()),
      0};
}

std::uint64_t LabTransfer::bytes_arrived() const {
  std::array<char, 4096> text{};
  const ssize_t length = ::pread(counters_.get(), text.data(), text.size(), 0);
  const std::string_view all{text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
  const std::string wanted = std::string{lab::interface_b} + ":";
  std::size_t at = all.find(wanted);
  if (at == std::string_view::npos) return 0;
  at = all.find_first_not_of(' ', at + wanted.size());
  std::uint64_t bytes = 0;
  if (at != std::string_view::npos)
    (void)std::from_chars(all.data() + at, all.data() + all.size(), bytes);
  return bytes;
}

void LabTransfer::stop_receiver(bool is_stopped) const noexcept {
  receive_.signal(is_stopped ? SIGSTOP : SIGCONT);
}
void LabTransfer::stop_sender(bool is_stopped) const noexcept {
  send_.signal(is_stopped ? SIGSTOP : SIGCONT);
}

Result<void> LabTransfer::finish() {
  for (Nanos waited{0}; waited < 2 * patience; waited += poll_interval) {
    const bool has_sent = send_.poll(), has_received = receive_.poll();
    if (has_sent && has_received) break;
    std::this_thread::sleep_for(poll_interval);
  }
  for (const auto& [child, name] : {std::pair{&send_, "send"}, {&receive_, "recv"}})
    if (!child->poll() || child->code() != 0)
      return Error{
          ExitCode::internal_error, fmt::format("end the transfer: {}", name),
          child->poll() ? fmt::format("it ended with {}", child->code()) : "it does not end",
          child->said(), 0};
  return success();
}

}  // namespace onehop::stress
