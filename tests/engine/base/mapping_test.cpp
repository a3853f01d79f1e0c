// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What Mapping::frame_memory promises: memory that is there before the data path touches it.
#include <catch2/catch.hpp>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/system/mapping.hpp"
#include "tests/support/needs.hpp"

namespace onehop {

TEST_CASE("frame memory is zeroed and all of it is present", "[base]") {
  ONEHOP_NEEDS(onehop::test::has_populate(), "memory comes without its pages here (MAP_POPULATE)");
  constexpr std::size_t bytes = 4 << 20;
  auto made = Mapping::frame_memory(bytes);
  REQUIRE(made.has_value());
  const Mapping memory = std::move(made).value();
  REQUIRE(memory.size() == bytes);
  std::vector<unsigned char> resident(bytes / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  REQUIRE(::mincore(memory.data(), bytes, resident.data()) == 0);
  CHECK(std::ranges::all_of(resident, [](unsigned char page) { return (page & 1) != 0; }));
  CHECK(std::all_of(memory.data(), memory.data() + bytes,
                    [](std::byte b) { return b == std::byte{0}; }));
}

TEST_CASE("memory whose pages come when they are touched takes none before", "[base]") {
  constexpr std::size_t bytes = 4 << 20;
  auto made = Mapping::frame_memory(bytes, Mapping::Pages::when_touched);
  REQUIRE(made.has_value());
  const Mapping memory = std::move(made).value();
  std::vector<unsigned char> resident(bytes / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  REQUIRE(::mincore(memory.data(), bytes, resident.data()) == 0);
  CHECK(std::ranges::none_of(resident, [](unsigned char page) { return (page & 1) != 0; }));
}

TEST_CASE("more memory than there are addresses is an error with its cause", "[base]") {
  const auto made = Mapping::frame_memory(std::size_t{1} << 62);
  REQUIRE(made.has_error());
  CHECK(made.error().code == ExitCode::io_unavailable);
}

}  // namespace onehop
