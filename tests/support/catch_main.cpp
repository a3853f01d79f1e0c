// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The one translation unit that holds Catch2's runner, so that each test program links it instead
// of compiling it.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
