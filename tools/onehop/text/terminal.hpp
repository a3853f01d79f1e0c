// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Terminal: a person at standard input and standard error, who can be asked as long as the question
// stands.
//
// A question is taken back by the stop token, at once and whatever the person does: who asked has
// gone, or Ctrl-C came. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace onehop::tool {

/// tell writes to standard error. A terminal that has hung up, or a pipe without a reader, does not
/// end a transfer: a failure is ignored.
void tell(std::string_view text) noexcept;

/// fitted breaks the lines of `text` that a terminal at standard error would cut in the middle of a
/// word. Elsewhere, for programs, each line stays one.
[[nodiscard]] std::string fitted(const std::string& text);

class Terminal {
 public:
  explicit Terminal(std::stop_token stop) : stop_{std::move(stop)} {}

  /// is_there: both streams are a terminal, and this process may read from it: one in the
  /// background would be stopped. Syscalls: isatty, tcgetpgrp.
  [[nodiscard]] static bool is_there();
  [[nodiscard]] static std::size_t rows();
  [[nodiscard]] static std::size_t columns();

  /// discard_input drops what was typed before the question that comes now: it was no answer to it.
  static void discard_input();
  static void print(const std::string& text);
  /// wait_line returns what was typed up to Enter. Nothing: the question was taken back, or the
  /// terminal is gone. Syscalls: eventfd, poll, read.
  [[nodiscard]] std::optional<std::string> wait_line() const;

 private:
  std::stop_token stop_;
};

}  // namespace onehop::tool
