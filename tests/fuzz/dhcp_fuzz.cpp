// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// N1, N6: whoever joins a group can send to its DHCP server. Whatever it says, an answer is one
// that the server may give: to its own link, with an address of its pool, short enough for any
// client. The server lives on over the inputs, so that they meet leases of earlier ones.
#include <algorithm>
#include <random>

#include "control/p2p/dhcp_server.hpp"
#include "engine/base/check.hpp"
#include "tests/control/p2p/dhcp_client.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace onehop;

std::uint64_t fuzz::accepted_total = 0;

namespace {
constexpr p2p::Ipv4 own = 0xc0a83101, first = own + p2p::DhcpServer::pool_offset;
constexpr p2p::Ipv4 to_all = 0xffffffff;
}  // namespace

std::size_t fuzz::make_valid(std::uint64_t seed, std::span<std::byte, input_bytes_max> out) {
  std::mt19937_64 random{seed};
  test::DhcpClient client{random() % 40};
  const auto address = own + static_cast<p2p::Ipv4>(random() % 50);
  const auto server = own + static_cast<p2p::Ipv4>(random() % 8 == 0);
  switch (random() % 8) {
    case 0: client.discover(); break;
    case 1: client.discover(address); break;
    case 2: client.select(server, address); break;
    case 3: client.reboot(address); break;
    case 4: client.renew(address); break;
    case 5: client.decline(server, address); break;
    case 6: client.release(server, address); break;
    default: client.inform(address); break;
  }
  if (random() % 4 == 0) client.with_id(std::string(2 + random() % 254, 'a'));
  if (random() % 4 == 0) {
    client.option(52, std::string(1, static_cast<char>(1 + random() % 3)));
    client.file = client.sname = std::string{
        "\x0c\x03"
        "box\xff"};
  }
  client.flags = static_cast<std::uint16_t>(random());
  const auto message = client.message(random() % 2 == 0);
  std::ranges::copy(message, out.begin());
  return message.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static p2p::DhcpServer server{own};
  static Instant now{1s};
  const std::span message{reinterpret_cast<const std::byte*>(data), size};
  now += 1s;
  const auto request = p2p::parse_dhcp(message);
  const auto answer = server.answer(now, message);
  ONEHOP_CHECK(request || !answer);
  if (request) ++fuzz::accepted_total;
  if (!answer) return 0;
  const auto bytes = answer->message();
  ONEHOP_CHECK(bytes.size() >= 300);
  ONEHOP_CHECK(bytes[0] == std::byte{2});
  ONEHOP_CHECK(load_be<std::uint32_t>(&bytes[4]) == request->xid);
  ONEHOP_CHECK(answer->to == to_all || (answer->to & p2p::group_mask) == (own & p2p::group_mask));
  const auto given = load_be<p2p::Ipv4>(&bytes[16]);
  ONEHOP_CHECK(given == 0 || given - first < p2p::DhcpServer::pool_addresses);
  ONEHOP_CHECK(!p2p::parse_dhcp(bytes));  // a server does not answer to servers
  return 0;
}
