// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Part of each test that needs root: it skips (exit 77) with the reason where that is missing,
// before Catch2's runner begins.
#include <cstdlib>

#include "tests/xdp/xdp_lab.hpp"

namespace {

[[maybe_unused]] const bool is_root = onehop::test::has_root() || (std::exit(77), false);

}  // namespace
