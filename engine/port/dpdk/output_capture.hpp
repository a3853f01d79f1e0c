// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// OutputCapture holds what a library prints to stdout and stderr while it lives: EAL writes usage
// texts to the one, getopt and drivers to the other, and stdout carries our JSON. Set-up only,
// while no other thread prints.
#pragma once

#include <string>

#include "engine/base/fd.hpp"

namespace onehop::dpdk {

class OutputCapture {
 public:
  /// Syscalls: memfd_create, dup, dup2.
  OutputCapture();
  ~OutputCapture() { end(); }

  /// end puts the descriptors back and returns what was printed, once. Syscalls: dup2, pread.
  std::string end();

 private:
  Fd text_, out_, err_;
};

/// cause_of picks from a library's output what says why it failed: lines that are not repetitions
/// of others, in order, without usage texts; at most `lines_max` of the last ones, joined by "; ".
[[nodiscard]] std::string cause_of(const std::string& output, std::size_t lines_max = 3);
/// cause_or_errno is that, or the text of the errno where nothing was printed.
[[nodiscard]] std::string cause_or_errno(const std::string& output, int errno_value);

}  // namespace onehop::dpdk
