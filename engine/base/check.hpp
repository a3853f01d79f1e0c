// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ONEHOP_CHECK stays on in release: our own bug stops the program where it is, before it can write
// a wrong byte. A peer's bad bytes are never a check; they are a counter and a drop.
#pragma once

namespace onehop {

/// check_failed prints the condition and its place, then aborts. It allocates nothing.
[[noreturn]] void check_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace onehop

#define ONEHOP_CHECK(condition)                               \
  do {                                                        \
    if (!(condition)) [[unlikely]]                            \
      ::onehop::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
