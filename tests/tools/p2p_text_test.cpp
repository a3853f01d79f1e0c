// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/p2p/p2p_text.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace onehop::p2p;

TEST_CASE("a network is written for QR readers, with what they obey escaped", "[tools][p2p]") {
  CHECK(wifi_text("DIRECT-xy", "abcd1234") == "WIFI:T:WPA;S:DIRECT-xy;P:abcd1234;;");
  CHECK(wifi_text("a;b", "c\\d:e,f\"") == "WIFI:T:WPA;S:a\\;b;P:c\\\\d\\:e\\,f\\\";;");
}

TEST_CASE("a QR code has its quiet zone, or is left out", "[tools][p2p]") {
  const std::string code = qr_code("WIFI:T:WPA;S:DIRECT-xy;P:abcd1234;;");
  if (code.empty()) return;  // built without libqrencode
  const std::string line = code.substr(0, code.find('\n'));
  // Four light modules above: two lines of full blocks and of nothing else.
  CHECK(line.find(' ', line.find('m')) == std::string::npos);
  CHECK(std::count(code.begin(), code.end(), '\n') > 14);
}

TEST_CASE("lines stand beside a picture, and the whole is measured", "[tools][p2p]") {
  const std::string picture = "\x1b[97;40m█▀▄ \x1b[0m\n\x1b[97;40m████\x1b[0m\n";
  CHECK(onehop::tool::size_of(picture) == std::pair<std::size_t, std::size_t>{2, 4});
  const std::string both = onehop::tool::beside(picture, {"one", "", "three"});
  CHECK(both == "\x1b[97;40m█▀▄ \x1b[0m  one\n\x1b[97;40m████\x1b[0m\nthree\n");
  CHECK(onehop::tool::size_of(both) == std::pair<std::size_t, std::size_t>{3, 9});
  CHECK(onehop::tool::beside("", {"one"}).empty());
}

TEST_CASE("a group is told with what is known of it", "[tools][p2p]") {
  const Group group{.interface_name = "p2p-wlan0-0",
                    .role = Role::owner,
                    .ssid = "DIRECT-xy",
                    .frequency_mhz = 5180};
  CHECK(group_text({group, "fe80::1", 80}) ==
        "DIRECT-xy on p2p-wlan0-0, of which this machine is the owner, 5180 MHz, 80 MHz wide, "
        "[fe80::1%p2p-wlan0-0]");
  CHECK(group_text({group, "fe80::1", 0, "192.168.49.1"}).ends_with("0], 192.168.49.1"));
  CHECK(group_json({group, "", 0})["address"].is_null());
  CHECK(group_json({group, "", 0})["ipv4"].is_null());
  CHECK(group_json({group, "", 0, "192.168.49.1"})["ipv4"] == "192.168.49.1");
}

TEST_CASE("Z4 a peer's name cannot write to the terminal, nor break a line", "[tools][p2p]") {
  const Peer peer{.name = "\x1b]0;x\x07\nbox", .address = "02:00:00:00:00:01"};
  const std::string text = peer_text(peer);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find('\n') == std::string::npos);
}
