// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace onehop {

void check_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "onehop: internal error: %s does not hold (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace onehop
