// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   a process that forms no group does not hold libsystemd.
// Method: the maps of this program, before and after; hardening_test.py looks at `onehop`. Bounds:
//         exact.
#include "control/p2p/sd_bus.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

namespace onehop::p2p {

namespace {
bool is_mapped(const std::string& library) {
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);)
    if (line.find(library) != std::string::npos) return true;
  return false;
}
}  // namespace

TEST_CASE("libsystemd is loaded by the first bus, and not before", "[p2p]") {
  REQUIRE(is_mapped("libc.so"));
  CHECK_FALSE(is_mapped("libsystemd"));
  REQUIRE(load_sd_bus().has_value());
  CHECK(is_mapped("libsystemd"));
  CHECK(sd_bus_set_method_call_timeout != nullptr);  // the last of the list
  CHECK(load_sd_bus().has_value());
}

}  // namespace onehop::p2p
