// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DhcpClient writes what a client of DHCP says, well or badly formed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "control/p2p/dhcp_message.hpp"
#include "engine/base/byte_codec.hpp"

namespace onehop::test {

class DhcpClient {
 public:
  explicit DhcpClient(std::uint64_t mac) : mac_{mac} {}

  std::uint32_t xid = 0x12345678;
  std::uint16_t flags = 0x8000;
  p2p::Ipv4 ciaddr = 0;
  std::string file, sname;                       ///< 128 and 64 bytes at most
  std::pair<std::size_t, unsigned> spoil{0, 1};  ///< a byte, and what it is at the end

  DhcpClient& with_id(const std::string& id) {
    id_ = id;
    return *this;
  }
  DhcpClient& bare() {
    options_.clear();
    return *this;
  }
  DhcpClient& option(unsigned code, const std::string& value) {
    options_ += static_cast<char>(code);
    options_ += static_cast<char>(value.size());
    options_ += value;
    return *this;
  }
  /// raw appends bytes to the options as they are.
  DhcpClient& raw(const std::string& bytes) {
    options_ += bytes;
    return *this;
  }
  DhcpClient& discover(p2p::Ipv4 wish = 0) {
    type(1);
    return wish == 0 ? *this : option(50, four(wish));
  }
  DhcpClient& select(p2p::Ipv4 server, p2p::Ipv4 address) {
    return type(3).option(54, four(server)).option(50, four(address));
  }
  DhcpClient& reboot(p2p::Ipv4 address) { return type(3).option(50, four(address)); }
  DhcpClient& renew(p2p::Ipv4 address) { return from(address).type(3); }
  DhcpClient& decline(p2p::Ipv4 server, p2p::Ipv4 address) {
    return type(4).option(54, four(server)).option(50, four(address));
  }
  DhcpClient& release(p2p::Ipv4 server, p2p::Ipv4 address) {
    return from(address).type(7).option(54, four(server));
  }
  DhcpClient& inform(p2p::Ipv4 address) { return from(address).type(8); }

  /// message ends the options with `end`, unless they are to be cut.
  [[nodiscard]] std::vector<std::byte> message(bool has_end = true) const {
    std::vector<std::byte> out(236 + 4 + options_.size() + 2 + id_.size() + 1);
    ByteWriter to{out};
    to.u32(0x01010600);
    to.u32(xid);
    to.u16(3);
    to.u16(flags);
    to.u32(ciaddr);
    to.u32(0);
    to.u64(0);
    to.u16(0x0200);
    to.u32(static_cast<std::uint32_t>(mac_));
    to.bytes(std::array<std::byte, 10>{});
    padded(to, sname, 64);
    padded(to, file, 128);
    to.u32(0x63825363);
    to.bytes(std::as_bytes(std::span{options_}));
    if (!id_.empty()) {
      to.u8(61);
      to.u8(static_cast<std::uint8_t>(id_.size()));
      to.bytes(std::as_bytes(std::span{id_}));
    }
    if (has_end) to.u8(255);
    out.resize(to.size());
    out.at(spoil.first) = static_cast<std::byte>(spoil.second);
    return out;
  }
  static std::string four(std::uint32_t value) {
    std::string out(4, '\0');
    store_be(reinterpret_cast<std::byte*>(out.data()), value);
    return out;
  }

 private:
  DhcpClient& from(p2p::Ipv4 address) {
    ciaddr = address;
    return *this;
  }
  DhcpClient& type(char value) { return bare().option(53, std::string(1, value)); }
  static void padded(ByteWriter& to, std::string text, std::size_t size) {
    text.resize(size);
    to.bytes(std::as_bytes(std::span{text}));
  }

  std::uint64_t mac_;
  std::string options_, id_;
};

}  // namespace onehop::test
