// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/watch/terminal.hpp"

#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdlib>

namespace onehop::watch {

namespace {

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(STDOUT_FILENO, text.data(), text.size());
    if (done <= 0) return;  // the terminal is gone; SIGHUP tells
    text.remove_prefix(static_cast<std::size_t>(done));
  }
}

}  // namespace

bool is_terminal() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) != 0 && term != nullptr && std::string_view{term} != "dumb" &&
         *term != '\0';
}

bool is_utf8_locale() {
  std::setlocale(LC_CTYPE, "");
  return std::string_view{::nl_langinfo(CODESET)} == "UTF-8";
}

bool wants_color() {
  const char* no = std::getenv("NO_COLOR");
  return no == nullptr || *no == '\0';
}

Size terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {size.ws_col, size.ws_row};
}

Result<Signals> Signals::open() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT})
    ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  Fd fd{::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd.is_open()) return errno_error(ExitCode::internal_error, "wait for signals");
  return Signals{std::move(fd)};
}

int Signals::next() const {
  signalfd_siginfo info{};
  return ::read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                              : 0;
}

void Terminal::enter() {
  termios now{};
  if (::tcgetattr(STDIN_FILENO, &now) == 0) {
    keys_ = now;
    // Keys come one by one and are not shown; Ctrl-C and Ctrl-Z stay signals.
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  write_all("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J");  // other screen, no cursor, no wrapping, clear
}

void Terminal::leave() {
  if (keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &*keys_);
  keys_.reset();
  write_all("\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l");
}

void Terminal::draw(std::string_view text) const {
  // One write. A line is cleared before it is written: behind a full one the cursor still stands on
  // its last column.
  std::string out = "\x1b[H\x1b[2K";
  if (text.ends_with('\n')) text.remove_suffix(1);  // a newline in the last row would scroll
  std::size_t rows = 1;
  for (const char c : text) {
    if (c == '\n')
      out += "\r\n\x1b[2K", ++rows;
    else
      out += c;
  }
  if (rows < terminal_size().rows) out += "\r\n\x1b[J";
  write_all(out);
}

char Terminal::take_key() const {
  pollfd entry{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  char key = 0;
  return keys_ && ::poll(&entry, 1, 0) == 1 && ::read(STDIN_FILENO, &key, 1) == 1 ? key : '\0';
}

void Terminal::suspend() {
  leave();
  ::raise(SIGSTOP);
}

void Terminal::resume() {
  // In the background the terminal may not be set: who tries is stopped until it is in front.
  leave();
  enter();
}

Wish attend(const Signals& signals, Terminal* terminal, short key_events) {
  Wish wish = Wish::none;
  for (int signal = signals.next(); signal != 0; signal = signals.next()) {
    if (signal == SIGTSTP && terminal != nullptr)
      terminal->suspend();
    else if (signal == SIGTSTP)
      ::raise(SIGSTOP);
    else if (signal == SIGCONT && terminal != nullptr)
      terminal->resume();
    else if (signal != SIGWINCH && signal != SIGCONT)
      return Wish::end;
    wish = Wish::draw;  // at once, in the size it now has
  }
  if (key_events == 0 || terminal == nullptr) return wish;
  const char key = terminal->take_key();
  return key == 'q' || key == '\x04' || (key_events & POLLHUP) != 0 ? Wish::end : wish;
}

}  // namespace onehop::watch
