// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Catch2's runner for tests that need root: it skips (exit 77) with the reason where that is
// missing.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "tests/xdp/xdp_lab.hpp"

int main(int argc, char** argv) {
  if (!onehop::test::has_root()) return 77;
  return Catch::Session().run(argc, argv);
}
