// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AllocGuard, and ONEHOP_CHECK: both stop the program, so each runs in a child.
#include "engine/base/alloc_guard.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "engine/base/check.hpp"
#include "tests/engine/base/child.hpp"

using namespace onehop;

TEST_CASE("a check that does not hold aborts and names its condition", "[base][check]") {
  const int two = 2;
  const auto end = test::run_in_child([&] { ONEHOP_CHECK(two == 3); });
  CHECK(end.signal == SIGABRT);
  CHECK(end.said.find("two == 3") != std::string::npos);
  CHECK(test::run_in_child([&] { ONEHOP_CHECK(two == 2); }).signal == 0);
}

TEST_CASE("alloc guard stops an allocation on the engine core", "[base][alloc_guard]") {
  if (!AllocGuard::is_linked()) {
    WARN("skipped: under a sanitizer there is no guard");
    return;
  }
  // Through a volatile pointer, so that the compiler cannot drop the pair of calls.
  static void* (*volatile allocate)(std::size_t) = std::malloc;
  const auto planted = test::run_in_child([] {
    const AllocGuard guard;
    std::free(allocate(100));
  });
  CHECK(planted.signal == SIGABRT);
  CHECK(planted.said.find("no allocation") != std::string::npos);
  const auto freed = test::run_in_child([] {
    void* const memory = allocate(100);
    const AllocGuard guard;
    std::free(memory);
  });
  CHECK(freed.signal == SIGABRT);
  const auto allowed = test::run_in_child([] {
    { const AllocGuard guard; }
    std::free(allocate(100));
  });
  CHECK(allowed.signal == 0);
}
