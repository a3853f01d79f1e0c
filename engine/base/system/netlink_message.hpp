// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Netlink messages: requests are built here, and answers are walked here and not by libmnl's
// callbacks, so that each length is checked. Never the engine core.
#pragma once

#include <libmnl/libmnl.h>
#include <linux/netlink.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "engine/base/system/address.hpp"

namespace onehop {

/// Larger counters are clamped: this fits Bytes and Nanos, and nothing ever counts so far.
inline constexpr std::uint64_t counter_max = std::uint64_t{1} << 62;

/// NetlinkRequest: a request with `family` behind its header, with room for a few attributes. It
/// passes for the nlmsghdr* that libmnl and NetlinkSocket take.
template <class Family>
class NetlinkRequest {
 public:
  NetlinkRequest(std::uint16_t type, unsigned flags, const Family& family) noexcept
      : message_{::mnl_nlmsg_put_header(buffer_.data())} {
    message_->nlmsg_type = type;
    message_->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    std::memcpy(::mnl_nlmsg_put_extra_header(message_, sizeof family), &family, sizeof family);
  }
  NetlinkRequest(const NetlinkRequest&) = delete;
  NetlinkRequest& operator=(const NetlinkRequest&) = delete;
  operator nlmsghdr*() noexcept { return message_; }

 private:
  alignas(NLMSG_ALIGNTO) std::array<char, 256> buffer_{};
  nlmsghdr* message_;
};

/// each_message calls on_message(bytes) for each message of a datagram, up to one whose length is
/// not within it, and returns how many bytes they fill. libmnl takes a length of 2^31 and more for
/// a negative one, and leaves the datagram.
template <class F>
std::size_t each_message(std::span<const std::byte> datagram, F&& on_message) {
  std::size_t at = 0;
  nlmsghdr header;
  while (datagram.size() - at >= sizeof header) {
    std::memcpy(&header, datagram.data() + at, sizeof header);
    const std::size_t left = datagram.size() - at;
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > left) break;
    on_message(datagram.subspan(at, header.nlmsg_len));
    at += std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), left);
  }
  return at;
}

/// bytes_of is the whole of a message that a NetlinkSocket hands over.
inline std::span<const std::byte> bytes_of(const nlmsghdr* message) noexcept {
  return {reinterpret_cast<const std::byte*>(message), message->nlmsg_len};
}

/// each_attribute calls on_attribute(type, payload); false where one does not lie within `bytes`.
template <class F>
bool each_attribute(std::span<const std::byte> bytes, F&& on_attribute) {
  while (bytes.size() >= sizeof(nlattr)) {
    nlattr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nla_len < sizeof header || header.nla_len > bytes.size()) return false;
    on_attribute(header.nla_type & NLA_TYPE_MASK,
                 bytes.subspan(sizeof header, header.nla_len - sizeof header));
    bytes = bytes.subspan(std::min<std::size_t>(NLA_ALIGN(header.nla_len), bytes.size()));
  }
  return true;
}

/// read_value reads a T from the front. The kernel may send more than we know of, never less.
template <class T>
bool read_value(std::span<const std::byte> bytes, T& out) {
  if (bytes.size() < sizeof(T)) return false;
  std::memcpy(&out, bytes.data(), sizeof(T));
  return true;
}

inline std::string read_text(std::span<const std::byte> bytes) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  return {text, ::strnlen(text, bytes.size())};
}

/// read_address: `value` is a netlink attribute's, of as many bytes as it has.
inline IpAddress read_address(std::span<const std::byte> value, bool is_v6) {
  IpAddress address;
  address.is_v6 = is_v6;
  std::ranges::copy(value.first(std::min(address.size_bytes(), value.size())),
                    address.bytes.begin());
  return address;
}

inline void put_address(nlmsghdr* message, std::uint16_t type, const IpAddress& address) {
  ::mnl_attr_put(message, type, address.size_bytes(), address.bytes.data());
}

/// message_body checks type and length and returns what follows the family header T.
template <class T>
std::optional<std::span<const std::byte>> message_body(std::span<const std::byte> message, int type,
                                                       T& family) {
  nlmsghdr header;
  if (!read_value(message, header) || header.nlmsg_type != type) return std::nullopt;
  if (header.nlmsg_len > message.size() || header.nlmsg_len < NLMSG_LENGTH(sizeof(T)))
    return std::nullopt;
  if (!read_value(message.subspan(NLMSG_HDRLEN), family)) return std::nullopt;
  const std::size_t offset = std::min<std::size_t>(NLMSG_SPACE(sizeof(T)), header.nlmsg_len);
  return message.subspan(offset, header.nlmsg_len - offset);
}

}  // namespace onehop
