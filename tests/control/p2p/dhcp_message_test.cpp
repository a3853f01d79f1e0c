// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/dhcp_message.hpp"

#include <catch2/catch.hpp>

#include "tests/control/p2p/dhcp_client.hpp"

using namespace onehop;
using namespace onehop::p2p;
using test::DhcpClient;

namespace {

constexpr Ipv4 server = 0xc0a83101, wish = 0xc0a8310a;

bool is_read(const DhcpClient& client) { return parse_dhcp(client.message()).has_value(); }

}  // namespace

TEST_CASE("a DHCP message is read with padding, unknown options, and without an end",
          "[control][p2p][dhcp]") {
  DhcpClient client{7};
  client.raw(std::string(9, '\0')).option(12, "phone").option(55, "").raw(std::string(1, '\0'));
  client.option(53, "\x03").option(54, DhcpClient::four(server)).option(57, "\x05\xdc");
  client.option(50, DhcpClient::four(wish));
  for (const bool has_end : {true, false}) {
    const auto read = parse_dhcp(client.message(has_end));
    REQUIRE(read);
    CHECK(read->type == DhcpType::request);
    CHECK(read->xid == client.xid);
    CHECK(read->server == server);
    CHECK(read->requested == wish);
    CHECK(read->chaddr[5] == std::byte{7});
    CHECK_FALSE(read->client_id);
  }
  client.raw("\xff").option(53, "\x01");  // what follows the end is no option
  CHECK(is_read(client));
}

TEST_CASE("N1 a DHCP message cut anywhere is refused before its type, and read within bounds",
          "[control][p2p][dhcp]") {
  DhcpClient client{7};
  const auto whole = client.select(server, wish).message();
  const std::size_t type_end = 240 + 3;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // An allocation of the exact size, so that a sanitizer sees a read beyond it.
    const std::vector<std::byte> cut{whole.begin(),
                                     whole.begin() + static_cast<std::ptrdiff_t>(size)};
    const bool is_between_options = (size - type_end) % 6 == 0;
    CHECK(parse_dhcp(cut).has_value() == (size >= type_end && is_between_options));
  }
}

TEST_CASE("N1 options of a hostile length are refused", "[control][p2p][dhcp]") {
  const auto with = [](const std::string& raw) { return DhcpClient{7}.discover().raw(raw); };
  CHECK(is_read(with("")));
  CHECK_FALSE(is_read(with("\x0c\xff")));                      // beyond the end
  CHECK_FALSE(is_read(DhcpClient{7}.bare().raw("\x35")));      // no length; 0xff follows
  CHECK_FALSE(is_read(DhcpClient{7}.option(53, "")));          // a type of no bytes
  CHECK_FALSE(is_read(DhcpClient{7}.option(53, "\x01\x01")));  // of two
  CHECK_FALSE(is_read(with(std::string{"\x32\x03\x01\x02\x03", 5})));
  CHECK_FALSE(is_read(with(std::string{"\x36\x05\x01\x02\x03\x04\x05", 7})));
  CHECK_FALSE(is_read(with(std::string{"\x3d\x00", 2})));      // an identifier of no bytes
  CHECK_FALSE(is_read(with(std::string{"\x3d\x01\x01", 3})));  // of one
  CHECK_FALSE(is_read(with(std::string{"\x35\x01\x01", 3})));  // a second type
  CHECK_FALSE(is_read(DhcpClient{7}.discover(wish).option(50, DhcpClient::four(wish))));
  CHECK_FALSE(is_read(DhcpClient{7}.discover().with_id("id").option(61, "id")));
}

TEST_CASE("N1 options go on in file and sname where the overload option says so",
          "[control][p2p][dhcp]") {
  const std::string address = std::string{"\x32\x04", 2} + DhcpClient::four(wish) + "\xff";
  const std::string other = std::string{"\x36\x04", 2} + DhcpClient::four(server) + "\xff";
  const auto read = [&](char where, const std::string& file, const std::string& sname) {
    DhcpClient client{7};
    client.file = file;
    client.sname = sname;
    return parse_dhcp(client.discover().option(52, std::string(1, where)).message());
  };
  CHECK(read(1, address, other)->requested == wish);
  CHECK(read(1, address, other)->server == 0);
  CHECK(read(2, address, other)->requested == 0);
  CHECK(read(2, address, other)->server == server);
  CHECK(read(3, address, other)->requested == wish);
  CHECK(read(3, address, other)->server == server);
  for (const char where : {'\x00', '\x04', '\xff'}) CHECK_FALSE(read(where, address, other));
  CHECK_FALSE(read(3, address, address));                             // twice the same
  CHECK_FALSE(read(1, std::string{"\x34\x01\x02", 3}, other));        // an overload in an overload
  CHECK_FALSE(read(2, address, std::string(62, '\0') + "\x0c\x05"));  // out of sname into file
  CHECK_FALSE(read(1, std::string(127, '\0') + "\x0c", other));
  DhcpClient plain{7};
  plain.file = address;  // the name of a boot file, without the option
  CHECK(parse_dhcp(plain.discover().message())->requested == 0);
}
