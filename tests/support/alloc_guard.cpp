// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The guard that stops the program; linked, it takes the place of engine/base/alloc_guard.cpp.
#include "engine/base/alloc_guard.hpp"

#include <cstddef>

#include "engine/base/check.hpp"

// malloc itself is interposed, which catches the C library's own allocations.
// __libc_malloc and its kin are glibc's own entry points under the public names.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void __libc_free(void*);
}

namespace {
thread_local int guard_depth = 0;

void check_allowed() noexcept {
  if (guard_depth == 0) return;
  guard_depth = 0;  // the report below may allocate
  onehop::check_failed("no allocation on the engine core after start", __FILE__, __LINE__);
}
}  // namespace

extern "C" {
void* malloc(std::size_t size) {
  check_allowed();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  check_allowed();
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  check_allowed();
  return __libc_realloc(old, size);
}
void free(void* memory) {
  check_allowed();
  __libc_free(memory);
}
}

namespace onehop {
AllocGuard::AllocGuard() noexcept { ++guard_depth; }
AllocGuard::~AllocGuard() { --guard_depth; }
bool AllocGuard::is_linked() noexcept { return true; }
}  // namespace onehop
