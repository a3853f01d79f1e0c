// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   docs/hardware.md shows the table of driver quirks whole, and errors find their remedy.
// Method: the rows are made here as the page has them, and looked for there.
#include "engine/base/system/driver_quirks.hpp"

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

// Goal:   no kernel that is known to panic is taken for a sound one, and none that is mended for a
//         faulty one.
// Method: the stable releases around the fault and its mend, and what distributions make of them.
TEST_CASE("a kernel that copy transmission ends is told by its types, else by its version",
          "[base][quirks]") {
  const auto is_sound = [](std::string_view release, BtfWords words = {}) {
    return judge_copy_transmit(release, words).is_sound;
  };
  for (const char* release : {"6.1.0-40-amd64", "6.12.57", "6.16", "6.16.7", "6.17.11", "6.17.12",
                              "6.18.0", "6.18.44-fc-v657", "6.19-rc1", "7.0.1", "5.15.0", "", "x"})
    CHECK(is_sound(release));
  for (const char* release : {"6.16.8", "6.16.12+deb14-amd64", "6.17", "6.17.0-8-generic",
                              "6.17.10", "6.18.0-rc7", "6.18-rc1"}) {
    CAPTURE(release);
    CHECK_FALSE(is_sound(release));
    CHECK(is_sound(release, {.has_mend = true}));  // a distribution brought it over
  }
  CHECK_FALSE(is_sound("5.14.0-611.el9", {.has_fault = true}));
  CHECK(judge_copy_transmit("6.17.3", {}).told_by == "Linux 6.17.3");
  CHECK(judge_copy_transmit("6.17.3", {.has_mend = true}).told_by == "its type information");

  using namespace std::string_view_literals;
  CHECK(find_btf_words("\0int\0xsk_addr_head\0list_head\0"sv).has_fault);
  CHECK(find_btf_words("\0int\0xsk_addrs\0u32\0"sv).has_mend);
  const BtfWords others = find_btf_words("\0xsk_addr_headers\0xsk_addrs_cache\0my_xsk_addrs\0"sv);
  CHECK_FALSE(others.has_fault);
  CHECK_FALSE(others.has_mend);
}

TEST_CASE("a driver that takes its link down is warned of", "[base][quirks]") {
  CHECK(link_warning("igb", "eth0").find("1 to 3 s") != std::string::npos);
  CHECK(link_warning("igb", "eth0").find("eth0") != std::string::npos);
  CHECK(link_warning("veth", "veth0").empty());
}

TEST_CASE("a known error names its remedy, then the usual one", "[base][quirks]") {
  const std::string remedy = quirk_remedy("virtio_net", EINVAL, "take --io udp");
  CHECK(remedy.find("iommu_platform=on") != std::string::npos);
  CHECK(remedy.ends_with("; or take --io udp"));
  CHECK(quirk_remedy("virtio_net", EBUSY, "take --io udp") == "take --io udp");
  CHECK(quirk_remedy("igb", 0, "").empty());
}
