// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/dhcp_message.hpp"

#include "engine/base/byte_codec.hpp"
#include "engine/base/check.hpp"

namespace onehop::p2p {

namespace {

using Octets = std::span<const std::byte>;

//= RFC 2131 §2, RFC 1700 (ARP parameters)
constexpr std::uint8_t from_client = 1, from_server = 2, ethernet = 1;
constexpr std::uint32_t magic = 0x63825363;
//= RFC 2132 §3 and §9
enum Option : std::uint8_t {
  pad = 0,
  subnet_mask = 1,
  requested_address = 50,
  lease_time = 51,
  overload = 52,
  message_type = 53,
  server_id = 54,
  client_id = 61,
  end = 255
};
constexpr unsigned file_has_options = 1, sname_has_options = 2;
constexpr std::size_t client_id_bytes_min = 2;

//= RFC 951 §3
// A BOOTP message has 300 bytes, and some clients and drivers still drop a shorter one.
constexpr std::size_t reply_bytes_min = 300;
static_assert(236 + 4 + 3 + 4 * 6 + 2 + 255 + 1 <= dhcp_reply_bytes_max, "all options fit");

/// Options are what is read of them; each may be there once.
struct Options {
  std::optional<std::uint8_t> type, overload;
  std::optional<Ipv4> requested, server;
  std::optional<std::string> client_id;
};

template <class T>
bool set_once(std::optional<T>& out, const Octets& value) {
  if (out.has_value() || value.size() != sizeof(T)) return false;
  out = load_be<T>(value.data());
  return true;
}

bool set_option(Options& options, std::uint8_t code, Octets value) {
  switch (code) {
    case message_type: return set_once(options.type, value);
    case overload: return set_once(options.overload, value);
    case requested_address: return set_once(options.requested, value);
    case server_id: return set_once(options.server, value);
    case client_id:
      if (options.client_id.has_value() || value.size() < client_id_bytes_min) return false;
      options.client_id.emplace(reinterpret_cast<const char*>(value.data()), value.size());
      return true;
    default: return true;
  }
}

/// read_options is false where an option does not lie within `area`, or is not as it must be.
bool read_options(Options& options, Octets area) {
  ByteReader in{area};
  while (in.remaining() > 0) {
    const std::uint8_t code = in.u8();
    if (code == pad) continue;
    if (code == end) return true;
    const std::uint8_t length = in.u8();
    const Octets value = in.bytes(length);
    if (!in.is_ok() || !set_option(options, code, value)) return false;
  }
  return true;
}

}  // namespace

std::string DhcpRequest::client() const {
  if (client_id) return *client_id;
  // As an identifier of Ethernet's type says it, so that a client that sends one now and then is
  // one client.
  //= RFC 2132 §9.14
  return std::string{static_cast<char>(ethernet)} +
         std::string{reinterpret_cast<const char*>(chaddr.data()), chaddr.size()};
}

std::optional<DhcpRequest> parse_dhcp(Octets message) {
  ByteReader in{message};
  DhcpRequest out;
  const bool is_request = in.u8() == from_client;
  const bool is_ethernet = in.u8() == ethernet && in.u8() == out.chaddr.size();
  (void)in.u8();  // hops
  out.xid = in.u32();
  (void)in.u16();  // secs
  out.flags = in.u16();
  out.ciaddr = in.u32();
  (void)in.u64();  // yiaddr, siaddr: a server's
  const bool is_relayed = in.u32() != 0;
  const Octets chaddr = in.bytes(16), sname = in.bytes(64), file = in.bytes(128);
  const bool is_dhcp = in.u32() == magic;
  if (!in.is_ok() || !is_request || !is_ethernet || is_relayed || !is_dhcp) return std::nullopt;
  std::memcpy(out.chaddr.data(), chaddr.data(), out.chaddr.size());

  Options options;
  if (!read_options(options, in.bytes(in.remaining()))) return std::nullopt;
  //= RFC 2131 §4.1
  // First the options field, then `file`, then `sname`.
  const unsigned where = options.overload.value_or(0);
  if (where > (file_has_options | sname_has_options)) return std::nullopt;
  if (where == 0 && options.overload) return std::nullopt;
  if ((where & file_has_options) != 0 && !read_options(options, file)) return std::nullopt;
  if ((where & sname_has_options) != 0 && !read_options(options, sname)) return std::nullopt;
  if (options.type < static_cast<std::uint8_t>(DhcpType::discover) ||
      options.type > static_cast<std::uint8_t>(DhcpType::inform))
    return std::nullopt;  // also where there is none
  out.type = static_cast<DhcpType>(*options.type);
  out.requested = options.requested.value_or(0);
  out.server = options.server.value_or(0);
  out.client_id = std::move(options.client_id);
  return out;
}

std::size_t write_dhcp(const DhcpRequest& request, const DhcpReply& reply, DhcpBytes& out) {
  out.fill(std::byte{0});
  ByteWriter to{out};
  to.u8(from_server);
  to.u8(ethernet);
  to.u8(static_cast<std::uint8_t>(request.chaddr.size()));
  to.u8(0);
  to.u32(request.xid);
  to.u16(0);
  to.u16(request.flags);
  //= RFC 2131 §4.3.1 table 3
  to.u32(reply.type == DhcpType::ack ? request.ciaddr : 0);
  to.u32(reply.yiaddr);
  to.u64(0);  // siaddr, giaddr
  to.bytes(request.chaddr);
  static constexpr std::array<std::byte, 10 + 64 + 128> empty{};  // rest of chaddr, sname, file
  to.bytes(empty);
  to.u32(magic);
  const auto put = [&to](Option code, auto value) {
    to.u8(code);
    to.u8(sizeof value);
    if constexpr (sizeof value == 1)
      to.u8(value);
    else
      to.u32(value);
  };
  put(message_type, static_cast<std::uint8_t>(reply.type));
  put(server_id, reply.server);
  if (reply.lease_seconds != 0) put(lease_time, reply.lease_seconds);
  if (reply.mask != 0) put(subnet_mask, reply.mask);
  if (request.client_id) {
    //= RFC 6842 §3
    const std::string& id = *request.client_id;
    to.u8(client_id);
    to.u8(static_cast<std::uint8_t>(id.size()));
    to.bytes(std::as_bytes(std::span{id}));
  }
  to.u8(end);
  ONEHOP_CHECK(to.is_ok());
  return std::max(to.size(), reply_bytes_min);
}

}  // namespace onehop::p2p
