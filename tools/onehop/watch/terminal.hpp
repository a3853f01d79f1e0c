// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Terminal: a screen of its own on standard output for the time of a view, and the keys and signals
// that belong to it. Plain ANSI. Whatever ends the program in order, the terminal is as it was. One
// at a time; the main thread.
#pragma once

#include <termios.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::watch {

/// is_terminal: standard output is one that can move its cursor.
[[nodiscard]] bool is_terminal();
/// is_utf8_locale: the environment (LC_ALL, LC_CTYPE, LANG) asks for UTF-8. Sets the process's
/// LC_CTYPE.
[[nodiscard]] bool is_utf8_locale();
/// wants_color: NO_COLOR is unset or empty (no-color.org).
[[nodiscard]] bool wants_color();

struct Size {
  std::size_t columns = 80, rows = 24;
};
[[nodiscard]] Size terminal_size();

/// Signals: those that end, stop or continue a process, and SIGWINCH, as a descriptor to wait for.
class Signals {
 public:
  [[nodiscard]] static Result<Signals> open();
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// next is one pending signal, or 0. Syscalls: read.
  [[nodiscard]] int next() const;

 private:
  explicit Signals(Fd fd) : fd_{std::move(fd)} {}
  Fd fd_;
};

class Terminal {
 public:
  Terminal() { enter(); }
  ~Terminal() { leave(); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// draw replaces what is shown. Lines end in \n and fit the size. Syscalls: write.
  void draw(std::string_view text) const;
  /// take_key reads one key without waiting; 0: none. Syscalls: read.
  [[nodiscard]] char take_key() const;
  [[nodiscard]] bool has_keys() const { return keys_.has_value(); }
  /// suspend gives the terminal back and stops this process (Ctrl-Z); SIGCONT, which continues it,
  /// asks for resume().
  void suspend();
  /// resume takes the terminal again: this process was stopped, and others have set it meanwhile.
  void resume();

 private:
  void enter();
  void leave();
  std::optional<termios> keys_;  // as they were; absent where standard input is no terminal
};

/// Wish: what the person at the terminal asks of a view.
enum class Wish : std::uint8_t { none, draw, end };
/// attend takes the signals that are pending, and a key where `key_events` (of poll, for standard
/// input) says that there is one. It stops this process where that is asked. `terminal` may be
/// null.
[[nodiscard]] Wish attend(const Signals& signals, Terminal* terminal, short key_events);

}  // namespace onehop::watch
