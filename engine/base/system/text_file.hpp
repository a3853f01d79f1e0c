// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// TextFile: a small file as a stream, read as a whole. std::ifstream opens without O_CLOEXEC, so a
// child that another thread starts meanwhile would inherit the descriptor.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <sstream>
#include <string>

#include "engine/base/fd.hpp"

namespace onehop {

/// read_text reads up to the end. Nothing: errno says why. Syscalls: read.
[[nodiscard]] inline std::optional<std::string> read_text(int fd) {
  std::string text;
  std::array<char, 4096> piece{};
  while (true) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

class TextFile : public std::istringstream {
 public:
  /// Where the file cannot be read the stream has failed, and errno says why. Syscalls: open, read,
  /// close.
  explicit TextFile(const std::string& path) {
    const Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (auto text = fd.is_open() ? read_text(fd.get()) : std::nullopt)
      str(*text);
    else
      setstate(std::ios::failbit);
  }
};

}  // namespace onehop
