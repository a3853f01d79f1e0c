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

namespace onehop::tool {

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
