// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/result.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/base/system/descriptors.hpp"

namespace onehop {

std::string Error::message() const {
  std::string text = attempt;
  if (!cause.empty()) text += ": " + cause;
  if (!hint.empty()) text += ". " + hint;
  return text;
}

std::string errno_text(int errno_value) {
  char buffer[128];
  return ::strerror_r(errno_value, buffer, sizeof buffer);
}

Error errno_error(ExitCode code, std::string attempt, std::string hint, int errno_value) {
  const int value = errno_value >= 0 ? errno_value : errno;
  if (value == EMFILE || value == ENFILE) return ran_out(std::move(attempt), value);
  return {code, std::move(attempt), errno_text(value), std::move(hint), value};
}

}  // namespace onehop
