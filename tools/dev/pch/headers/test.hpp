// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// For the test programs.
#include "tools/dev/pch/headers/std.hpp"

#include <catch2/catch.hpp>
