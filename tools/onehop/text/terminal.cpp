// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/text/terminal.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "engine/base/fd.hpp"
#include "tools/onehop/text/help.hpp"

namespace onehop::tool {

namespace {
// Of an answer; the kernel's own bound on a line of a terminal
constexpr std::size_t line_bytes_max = 4096;

winsize size_of_terminal() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  return size;
}
}  // namespace

void tell(std::string_view text) noexcept {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

std::string fitted(const std::string& text) {
  constexpr std::size_t indent = 2, columns_least = 20;
  if (::isatty(STDERR_FILENO) == 0) return text;
  const std::size_t columns = std::max(Terminal::columns(), columns_least) - 1;
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    out += line.size() <= columns ? line : wrap(line, columns, indent);
    if (end < text.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

bool Terminal::is_there() {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDERR_FILENO) == 0) return false;
  // Of a terminal that controls us; another one stops nobody
  const pid_t foreground = ::tcgetpgrp(STDIN_FILENO);
  return foreground < 0 || foreground == ::getpgrp();
}

std::size_t Terminal::rows() {
  const winsize size = size_of_terminal();
  return size.ws_row > 0 ? size.ws_row : 24;
}

std::size_t Terminal::columns() {
  const winsize size = size_of_terminal();
  return size.ws_col > 0 ? size.ws_col : 80;
}

void Terminal::discard_input() { (void)::tcflush(STDIN_FILENO, TCIFLUSH); }

void Terminal::print(const std::string& text) {
  fmt::print(stderr, "{}", text);
  std::fflush(stderr);
}

std::optional<std::string> Terminal::wait_line() const {
  const Fd wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!wake.is_open()) return std::nullopt;
  const std::stop_callback on_stop{stop_, [&wake] {
                                     const std::uint64_t one = 1;
                                     (void)!::write(wake.get(), &one, sizeof one);
                                   }};
  std::string line;
  while (line.size() < line_bytes_max) {
    std::array<pollfd, 2> fds{{{STDIN_FILENO, POLLIN, 0}, {wake.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return std::nullopt;
    if (stop_.stop_requested()) return std::nullopt;
    if (fds[0].revents == 0) continue;
    std::array<char, 256> typed{};
    const ssize_t count = ::read(STDIN_FILENO, typed.data(), typed.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return std::nullopt;
    line.append(typed.data(), static_cast<std::size_t>(count));
    if (const std::size_t end = line.find('\n'); end != std::string::npos)
      return line.substr(0, end);
  }
  return std::nullopt;
}

}  // namespace onehop::tool
