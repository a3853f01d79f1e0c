// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Goal:   an address is read in each form that the help names, and in no other.
// Method: the text after --to or --listen, and what is read of it or said against it.
#include <catch2/catch.hpp>

#include "control/transfer/settings.hpp"

using namespace onehop::transfer;

namespace {

std::string read(const std::string& text) {
  const auto endpoint = parse_endpoint(text);
  REQUIRE(endpoint.has_value());
  return endpoint.value().host + " " + std::to_string(endpoint.value().port);
}

std::string cause(const std::string& text) {
  const auto endpoint = parse_endpoint(text);
  REQUIRE_FALSE(endpoint.has_value());
  CHECK(endpoint.error().code == onehop::ExitCode::usage);
  CHECK(endpoint.error().attempt == "read the address '" + text + "'");
  CHECK(endpoint.error().hint == "Write HOST, HOST:PORT, [IPv6] or [IPv6]:PORT");
  return endpoint.error().cause;
}

}  // namespace

TEST_CASE("a host, and a port where it is given", "[tools]") {
  CHECK(read("10.0.0.1") == "10.0.0.1 7411");
  CHECK(read("10.0.0.1:9000") == "10.0.0.1 9000");
  CHECK(read("laptop.local:9000") == "laptop.local 9000");
  CHECK(read(":9000") == " 9000");
  CHECK(read("fd00::1") == "fd00::1 7411");
}

TEST_CASE("an IPv6 address stands in brackets, with or without a port", "[tools]") {
  CHECK(read("[fd00::1]") == "fd00::1 7411");
  CHECK(read("[fd00::1]:9000") == "fd00::1 9000");
  CHECK(read("[fe80::1%wlan0]:9000") == "fe80::1%wlan0 9000");
  CHECK(read("[::ffff:10.0.0.1]:9000") == "::ffff:10.0.0.1 9000");
}

TEST_CASE("a link-local address without its interface is refused", "[tools]") {
  for (const char* text : {"fe80::1", "[fe80::1]", "[fe80::1]:9000"}) {
    INFO(text);
    const auto parsed = parse_endpoint(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().cause.find("[fe80::1%INTERFACE]") != std::string::npos);
  }
}

TEST_CASE("an IPv4 address or a name in brackets is refused", "[tools]") {
  for (const char* text : {"[10.0.0.1]:7411", "[10.0.0.1]", "[laptop.local]:9000", "[]", "[]:9000"})
    CHECK(cause(text) == "only an IPv6 address stands in brackets");
}

TEST_CASE("what is no address is refused with what is wrong about it", "[tools]") {
  CHECK(cause("[fd00::1") == "the bracket is not closed");
  CHECK(cause("[fd00::1]9000") == "after the bracket only :PORT may follow");
  CHECK(cause("[fd00::1]:") == "the port is missing");
  CHECK(cause("10.0.0.1:") == "the port is missing");
  for (const char* text : {"10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:x", "[fd00::1]:9000x"})
    CHECK(cause(text) == "the port is not a number from 1 to 65535");
}
