// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   docs/hardware.md shows the table of driver quirks whole, and errors find their remedy.
// Method: the rows are made here as the page has them, and looked for there.
#include "engine/base/driver_quirks.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <fstream>
#include <set>

using namespace onehop;

TEST_CASE("docs/hardware.md has every driver quirk", "[base][quirks]") {
  std::ifstream file{ONEHOP_HARDWARE_PAGE};
  REQUIRE(file.is_open());
  const std::string page = std::string{std::istreambuf_iterator<char>{file}, {}} + '\n';
  std::string rows;
  for (const DriverQuirk& row : driver_quirks())
    rows += fmt::format("| `{}` | `{}` | {} | {} | {} | {} |\n", row.driver, row.key, row.kernels,
                        row.quirk, row.answer, row.source);
  INFO("the page has to show these rows:\n" << rows);
  CHECK(page.find("---|\n" + rows + "\n") != std::string::npos);
}

TEST_CASE("each driver quirk has a key of its own and a source", "[base][quirks]") {
  std::set<std::string_view> keys;
  for (const DriverQuirk& row : driver_quirks()) {
    CAPTURE(row.key);
    CHECK(keys.insert(row.key).second);
    CHECK_FALSE(row.source.empty());
    CHECK((row.errno_value == 0) == row.remedy.empty());
  }
}

TEST_CASE("a quirk is of a driver, of a family, or of all Wi-Fi", "[base][quirks]") {
  const DriverQuirk one{.driver = "igb"}, family{.driver = "mt792*"}, all{.driver = "Wi-Fi"};
  CHECK(one.is_of("igb", false));
  CHECK_FALSE(one.is_of("igbvf", false));
  CHECK(family.is_of("mt7921e", true));
  CHECK_FALSE(family.is_of("mt7915e", true));
  CHECK(all.is_of("iwlwifi", true));
  CHECK_FALSE(all.is_of("igb", false));
}

TEST_CASE("a known error names its remedy, then the usual one", "[base][quirks]") {
  const std::string remedy = quirk_remedy("virtio_net", EINVAL, "take --io udp");
  CHECK(remedy.find("iommu_platform=on") != std::string::npos);
  CHECK(remedy.ends_with("; or take --io udp"));
  CHECK(quirk_remedy("virtio_net", EBUSY, "take --io udp") == "take --io udp");
  CHECK(quirk_remedy("igb", 0, "").empty());
}
