// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/rings/program.hpp"

#include <fmt/format.h>
#include <regex.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "engine/base/display_name.hpp"
#include "engine/base/system/text_file.hpp"

namespace onehop::rings {

namespace {

std::vector<int> numbers_in(const std::string& folder) {
  std::vector<int> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator it{folder, error}, end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    int number = 0;
    const auto [last, fault] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (fault == std::errc{} && last == name.data() + name.size()) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::string path_of(pid_t pid, std::string_view name) {
  return fmt::format("/proc/{}/{}", pid, name);
}

std::optional<std::string> text_of(const std::string& path) {
  const Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  return fd.is_open() ? read_text(fd.get()) : std::nullopt;
}

bool is_xdp(const Fd& socket) {
  int family = 0;
  socklen_t length = sizeof family;
  return socket.is_open() &&
         ::getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 &&
         family == AF_XDP;
}

/// drop_others removes sockets of other families: those map their memory from offset 0 as well,
/// and nothing behind it.
void drop_others(pid_t pid, std::vector<RingMapping>& rings) {
  const auto is_alone = [&rings](const RingMapping& ring) {
    return ring.kind == RingKind::rx &&
           std::ranges::count(rings, ring.inode, &RingMapping::inode) == 1;
  };
  std::vector<std::uint64_t> others;
  for (const RingMapping& ring : rings)
    if (is_alone(ring) && !is_xdp(borrow_socket(pid, ring.inode))) others.push_back(ring.inode);
  std::erase_if(rings, [&](const RingMapping& ring) {
    return std::ranges::find(others, ring.inode) != others.end();
  });
}

}  // namespace

Error cannot_look(pid_t pid, const char* at_what, int errno_value) {
  const std::string attempt = fmt::format("look at {} of process {}", at_what, pid);
  if (errno_value == ENOENT || errno_value == ESRCH)
    return {ExitCode::peer_unreachable, attempt, "there is no such process",
            "'onehop rings' without a PID lists programs with AF_XDP rings", errno_value};
  std::string hint = "Run it as root (sudo): it takes CAP_SYS_PTRACE";
  // 1: only parents of a process may look into it; 2: CAP_SYS_PTRACE alone; 3: nobody, for good.
  const auto scope = text_of("/proc/sys/kernel/yama/ptrace_scope");
  if (scope && scope->starts_with('3'))
    hint = "kernel.yama.ptrace_scope is 3: nobody may, until a boot without it";
  else if (scope && !scope->starts_with('0'))
    hint += fmt::format(", or kernel.yama.ptrace_scope = 0 (now {}) for your own programs",
                        scope->substr(0, scope->find('\n')));
  return errno_error(ExitCode::privilege_missing, attempt, hint, errno_value);
}

Result<Program> read_program(pid_t pid) {
  errno = 0;
  const auto maps = text_of(path_of(pid, "maps"));
  if (!maps) return cannot_look(pid, "the memory map", errno);
  Program program{.pid = pid, .name = {}, .rings = mappings_in(*maps)};
  drop_others(pid, program.rings);
  if (auto name = text_of(path_of(pid, "comm")); name && !name->empty()) {
    name->pop_back();  // its newline
    program.name = display_name(*name);
  }
  return program;
}

Found find_programs() {
  Found found;
  for (const int pid : numbers_in("/proc")) {
    auto program = read_program(pid);
    if (program.has_error())
      found.is_all &= program.error().code != ExitCode::privilege_missing;
    else if (!program.value().rings.empty())
      found.programs.push_back(std::move(program).value());
  }
  return found;
}

Result<std::vector<Program>> named(std::vector<Program> programs, const std::string& pattern) {
  regex_t expression{};
  if (const int fault = ::regcomp(&expression, pattern.c_str(), REG_EXTENDED | REG_NOSUB);
      fault != 0) {
    std::array<char, 128> text{};
    ::regerror(fault, &expression, text.data(), text.size());
    return Error{ExitCode::usage, "look for programs named '" + pattern + "'", text.data(),
                 "Give a PID, or a name as for pgrep"};
  }
  std::erase_if(programs, [&](const Program& program) {
    return ::regexec(&expression, program.name.c_str(), 0, nullptr, 0) != 0;
  });
  ::regfree(&expression);
  return programs;
}

Fd borrow_socket(pid_t pid, std::uint64_t inode) {
  const Fd process{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U))};
  if (!process.is_open()) return {};
  const std::string wanted = fmt::format("socket:[{}]", inode);
  for (const int number : numbers_in(path_of(pid, "fd"))) {
    std::array<char, 64> target{};
    const ssize_t length = ::readlink(path_of(pid, fmt::format("fd/{}", number)).c_str(),
                                      target.data(), target.size());
    if (length <= 0 || std::string_view{target.data(), static_cast<std::size_t>(length)} != wanted)
      continue;
    Fd socket{static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0U))};
    struct stat info {};
    if (socket.is_open() && ::fstat(socket.get(), &info) == 0 && info.st_ino == inode)
      return socket;
  }
  return {};
}

}  // namespace onehop::rings
