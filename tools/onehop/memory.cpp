// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/memory.hpp"

#include <malloc.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "engine/base/check.hpp"
#include "engine/base/result.hpp"

namespace onehop::tool {

namespace {

[[noreturn]] void refused() noexcept {
  static constexpr std::string_view text =
      "onehop: run: out of memory: Cannot allocate memory. Raise the limit on memory (ulimit -v), "
      "or end other programs\n";
  [[maybe_unused]] const ssize_t rc = ::write(STDERR_FILENO, text.data(), text.size());
  std::_Exit(static_cast<int>(ExitCode::io_unavailable));
}

void* checked(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr && bytes > 0) refused();
  return memory;
}

void* allocate(std::size_t bytes, const char*, int) noexcept {
  return checked(std::malloc(bytes), bytes);
}

void* reallocate(void* memory, std::size_t bytes, const char*, int) noexcept {
  return checked(std::realloc(memory, bytes), bytes);
}

void release(void* memory, const char*, int) noexcept { std::free(memory); }

}  // namespace

void end_where_memory_is_refused() noexcept {
  std::set_new_handler(refused);
  // What is freed in one arena is of no use in another. The engine core never allocates, and so
  // does not wait for the one lock.
  (void)::mallopt(M_ARENA_MAX, 1);
  const int rc = ::CRYPTO_set_mem_functions(allocate, reallocate, release);
  ONEHOP_CHECK(rc == 1);
}

}  // namespace onehop::tool
