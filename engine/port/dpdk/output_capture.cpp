// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/dpdk/output_capture.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"

namespace onehop::dpdk {

namespace {

// Of drivers that want other processes to share their devices; it is never why anything failed.
constexpr std::string_view noise = "register mp action";

}  // namespace

OutputCapture::OutputCapture()
    : text_{::memfd_create("onehop-eal", MFD_CLOEXEC)},
      out_{::fcntl(1, F_DUPFD_CLOEXEC, 0)},
      err_{::fcntl(2, F_DUPFD_CLOEXEC, 0)} {
  std::fflush(stdout);
  std::fflush(stderr);
  if (!text_.is_open()) return;  // then it prints where it likes
  ::dup2(text_.get(), 1);
  ::dup2(text_.get(), 2);
}

std::string OutputCapture::end() {
  if (!text_.is_open()) return {};
  std::fflush(stdout);
  std::fflush(stderr);
  ::dup2(out_.get(), 1);
  ::dup2(err_.get(), 2);
  std::string text;
  std::array<char, 4096> part;
  for (off_t at = 0;;) {
    const ssize_t n = ::pread(text_.get(), part.data(), part.size(), at);
    if (n <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(n));
    at += n;
  }
  text_.close();
  return text;
}

std::string cause_of(const std::string& output, std::size_t lines_max) {
  std::vector<std::string> lines;
  std::istringstream in{output};
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Usage:")) break;
    if (const std::size_t fatal = line.find("FATAL: "); fatal != std::string::npos)
      line.erase(fatal, 7);
    if (line.starts_with("EAL: ")) line.erase(0, 5);
    while (!line.empty() && (line.back() == '.' || line.back() == '\r')) line.pop_back();
    const bool is_new = !line.empty() && line.find(noise) == std::string::npos &&
                        std::ranges::find(lines, line) == lines.end();
    if (is_new) lines.push_back(line);
  }
  std::string cause;
  for (std::size_t i = lines.size() - std::min(lines.size(), lines_max); i < lines.size(); ++i)
    cause += (cause.empty() ? "" : "; ") + lines[i];
  return cause;
}

std::string cause_or_errno(const std::string& output, int errno_value) {
  std::string cause = cause_of(output);
  return cause.empty() ? errno_text(errno_value) : cause;
}

}  // namespace onehop::dpdk
