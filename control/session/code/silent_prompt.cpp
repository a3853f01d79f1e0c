// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/session/code/silent_prompt.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "control/session/code/code_form.hpp"
#include "control/session/code/words.hpp"
#include "engine/base/fd.hpp"

namespace onehop::session {

namespace {

/// What ends or stops a process whose terminal is silent, and what continues it.
constexpr std::array watched{SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGALRM, SIGUSR1,
                             SIGUSR2, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT};

bool is_stop(int signal) noexcept {
  return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

// The handler has no other way to find it.
volatile std::sig_atomic_t pipe_end = -1;

void on_signal(int signal) {
  const int errno_before = errno;
  const auto number = static_cast<unsigned char>(signal);
  (void)!::write(pipe_end, &number, 1);
  errno = errno_before;
}

/// CaughtSignals turns signals into bytes of a pipe. What was ignored stays ignored.
class CaughtSignals {
 public:
  CaughtSignals() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
    out_ = Fd{ends[0]};
    in_ = Fd{ends[1]};
    pipe_end = in_.get();
    for (std::size_t i = 0; i < watched.size(); ++i) {
      (void)::sigaction(watched[i], nullptr, &before_[i]);
      // A process that ignores SIGCONT still needs to know that its job continues.
      if (before_[i].sa_handler != SIG_IGN || watched[i] == SIGCONT) catch_one(watched[i]);
    }
  }
  ~CaughtSignals() {
    if (!is_open()) return;
    for (std::size_t i = 0; i < watched.size(); ++i)
      (void)::sigaction(watched[i], &before_[i], nullptr);
    // A signal that came last is passed on: it has the effect that it would have had without us.
    while (const int signal = next())
      if (signal != SIGCONT) (void)::raise(signal);
    pipe_end = -1;
  }
  CaughtSignals(const CaughtSignals&) = delete;
  CaughtSignals& operator=(const CaughtSignals&) = delete;

  [[nodiscard]] bool is_open() const noexcept { return out_.is_open(); }
  [[nodiscard]] int fd() const noexcept { return out_.get(); }
  /// next is one that has come; 0: none.
  [[nodiscard]] int next() const noexcept {
    unsigned char signal = 0;
    return ::read(out_.get(), &signal, 1) == 1 ? signal : 0;
  }
  /// let_act does what the signal does to a process that does not watch it: ends it, stops it until
  /// it is continued, or calls the handler that was there before.
  void let_act(int signal) const {
    const auto at = static_cast<std::size_t>(std::ranges::find(watched, signal) - watched.begin());
    (void)::sigaction(signal, &before_[at], nullptr);
    (void)::raise(signal);
    catch_one(signal);
  }

 private:
  static void catch_one(int signal) {
    struct sigaction caught {};
    caught.sa_handler = on_signal;
    ::sigfillset(&caught.sa_mask);
    (void)::sigaction(signal, &caught, nullptr);
  }

  Fd out_, in_;
  std::array<struct sigaction, watched.size()> before_{};
};

/// Echo is off from set() to restore(), or to the end.
class Echo {
 public:
  Echo(int terminal, Typed typed) : terminal_{terminal}, typed_{typed} {}
  ~Echo() { restore(); }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;

  /// What was typed before is dropped: it was shown, and meant for somebody else.
  [[nodiscard]] bool set() {
    if (is_set_) return true;
    if (::tcgetattr(terminal_, &before_) != 0) return false;
    termios wanted = before_;
    wanted.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    if (typed_ == Typed::shown) {  // key by key: LineEdit shows them
      wanted.c_lflag &= ~static_cast<tcflag_t>(ICANON | IEXTEN);
      wanted.c_cc[VMIN] = 1;
      wanted.c_cc[VTIME] = 0;
    }
    is_set_ = ::tcsetattr(terminal_, TCSAFLUSH, &wanted) == 0;
    return is_set_;
  }
  void restore() noexcept {
    if (is_set_) (void)::tcsetattr(terminal_, TCSAFLUSH, &before_);
    is_set_ = false;
  }
  /// forget: somebody else has set the terminal meanwhile.
  void forget() noexcept { is_set_ = false; }

 private:
  int terminal_;
  Typed typed_;
  termios before_{};
  bool is_set_ = false;
};

/// LineEdit is a line that is typed key by key, as a terminal would edit it, and TAB.
class LineEdit {
 public:
  explicit LineEdit(std::span<std::byte> line) : line_{line} {}
  enum class State : std::uint8_t { going_on, done, ended };

  /// take takes a key; `shown` is what the terminal is to show for it.
  State take(char key, std::string& shown) {
    constexpr char backspace = '\b', end = '\x04', kill = '\x15', escape = '\x1b', rubout = '\x7f';
    if (key == '\n' || key == '\r') {
      put('\n', shown);
      return State::done;
    }
    if (key == end && filled_ == 0) return State::ended;
    if (is_in_sequence_ || key == escape) {
      // A key that sends several: ESC, then [ or O, then up to a letter.
      is_in_sequence_ = key == escape || key == '[' || key == 'O' || key < '@';
    } else if (key == backspace || key == rubout) {
      erase(1, shown);
    } else if (key == kill) {
      erase(filled_, shown);
    } else if (key == '\t') {
      const std::string rest = complete_typed(text());
      for (const char c : rest) put(c, shown);
      if (rest.empty()) shown = "\a";
    } else if (key >= ' ' && key <= '~') {
      put(key, shown);
    } else {
      shown = "\a";  // a sign that no code has
    }
    return filled_ == line_.size() ? State::done : State::going_on;
  }
  [[nodiscard]] std::size_t filled() const noexcept { return filled_; }

 private:
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(line_.data()), filled_};
  }
  void put(char c, std::string& shown) {
    if (filled_ == line_.size()) return;
    line_[filled_++] = static_cast<std::byte>(c);
    shown += c;
  }
  void erase(std::size_t count, std::string& shown) {
    for (; count > 0 && filled_ > 0; --count, --filled_) shown += "\b \b";
  }

  std::span<std::byte> line_;
  std::size_t filled_ = 0;
  bool is_in_sequence_ = false;
};

class SilentPrompt {
 public:
  SilentPrompt(int terminal, const std::string& prompt, Typed typed)
      : terminal_{terminal}, prompt_{prompt}, typed_{typed}, echo_{terminal, typed} {}

  Result<std::size_t> read(std::span<std::byte> line) {
    if (!signals_.is_open()) return errno_error(ExitCode::usage, attempt, hint);
    if (!begin()) return silence_error();
    std::size_t filled = 0;
    LineEdit edit{line};
    while (filled < line.size()) {
      std::array<pollfd, 2> fds{{{terminal_, POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
      if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR)
        return errno_error(ExitCode::usage, attempt, hint);
      if (const int signal = signals_.next(); signal != 0) {
        if (!react(signal)) return silence_error();
        filled = 0;  // the terminal has dropped the rest of the line as well
        edit = LineEdit{line};
        continue;
      }
      if (fds[0].revents == 0) continue;
      std::byte key{};
      const ssize_t got = ::read(terminal_, &key, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error(ExitCode::usage, attempt, hint);
      if (got == 0) break;
      if (typed_ == Typed::shown) {
        std::string shown;
        const LineEdit::State state = edit.take(static_cast<char>(key), shown);
        say(shown);
        ::OPENSSL_cleanse(shown.data(), shown.size());
        filled = edit.filled();
        if (state != LineEdit::State::going_on) break;
        continue;
      }
      line[filled++] = key;
      if (key == std::byte{'\n'}) break;
    }
    const bool is_echoed = filled > 0 && line[filled - 1] == std::byte{'\n'};
    if (typed_ == Typed::hidden || !is_echoed) say("\n");
    return filled;
  }

 private:
  static constexpr const char* attempt = "read the pairing code";
  static constexpr const char* hint = "Give --code-file FILE";

  static Error silence_error() {
    return {ExitCode::usage, attempt, "the terminal's echo cannot be set", hint};
  }
  void say(const std::string& text) const { (void)!::write(terminal_, text.data(), text.size()); }
  /// begin waits until the process is in the foreground: in the background a terminal may be
  /// neither set nor read, and who tries is stopped.
  bool begin() {
    while (::tcgetpgrp(terminal_) != ::getpgrp()) {
      signals_.let_act(SIGTTIN);
      // A job that cannot be continued is not stopped; reading will report why it cannot.
      if (::tcgetpgrp(terminal_) != ::getpgrp() && !has_continued()) break;
    }
    if (!echo_.set()) return false;
    say(prompt_);
    return true;
  }
  bool has_continued() const {
    bool has = false;
    while (const int signal = signals_.next()) has |= signal == SIGCONT;
    return has;
  }
  bool react(int signal) {
    if (signal == SIGCONT) {
      echo_.forget();  // SIGSTOP came before it, and a shell may have set the terminal since
    } else {
      echo_.restore();
      if (!is_stop(signal)) say("\n");
      signals_.let_act(signal);
      (void)has_continued();
    }
    return begin();
  }

  int terminal_;
  const std::string& prompt_;
  Typed typed_;
  CaughtSignals signals_;
  Echo echo_;  // ends before signals_ does: the terminal comes first
};

}  // namespace

std::string complete_typed(std::string_view line) {
  std::size_t groups = 0;
  std::string_view last, left = line;
  for (; const auto group = next_group(left); ++groups) last = *group;
  // Nothing is begun behind a dash or a space.
  if (last.empty() || last.end() != line.end()) return {};
  const std::string_view word = complete_word(last);
  if (word.empty()) return {};
  return std::string{word.substr(last.size())} + (groups < code_words ? "-" : "");
}

Result<std::size_t> read_typed(int terminal, const std::string& prompt, Typed typed,
                               std::span<std::byte> line) {
  return SilentPrompt{terminal, prompt, typed}.read(line);
}

}  // namespace onehop::session
