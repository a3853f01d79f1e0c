// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/crypto/secret.hpp"

#include <openssl/crypto.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <atomic>

#include "engine/base/check.hpp"

namespace onehop::crypto {

namespace {
// Written only in a child that has one thread (the handler runs inside fork): relaxed is enough.
std::atomic<std::uint32_t> generation{0};
void count_fork() noexcept { generation.fetch_add(1, std::memory_order_relaxed); }

// A namespace-scope object, so that no fork is missed and reading needs no guard.
const int fork_handler_rc = ::pthread_atfork(nullptr, nullptr, count_fork);
}  // namespace

void wipe(std::span<std::byte> memory) noexcept { OPENSSL_cleanse(memory.data(), memory.size()); }

bool forbid_core_dumps() noexcept {
  const rlimit none{0, 0};
  return ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && ::setrlimit(RLIMIT_CORE, &none) == 0;
}

std::uint32_t fork_generation() noexcept {
  ONEHOP_CHECK(fork_handler_rc == 0);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace onehop::crypto
