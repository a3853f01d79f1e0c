// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Attributes of netlink messages, walked here and not by libmnl's callbacks, so that each length is checked against the
// bytes that are there. Pure: bytes in, values out. For the message parsers of this folder.
#pragma once

#include <linux/netlink.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

namespace onehop::link {

/// Larger counters are clamped: this fits Bytes and Nanos, and nothing ever counts so far.
inline constexpr std::uint64_t counter_max = std::uint64_t{1} << 62;

/// each_attribute calls on_attribute(type, payload) for each; false where an attribute does not lie within `bytes`.
template <class F>
bool each_attribute(std::span<const std::byte> bytes, F&& on_attribute) {
  while (bytes.size() >= sizeof(nlattr)) {
    nlattr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nla_len < sizeof header || header.nla_len > bytes.size()) return false;
    on_attribute(header.nla_type & NLA_TYPE_MASK, bytes.subspan(sizeof header, header.nla_len - sizeof header));
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

/// message_body checks type and length and returns what follows the family header T.
template <class T>
std::optional<std::span<const std::byte>> message_body(std::span<const std::byte> message, int type, T& family) {
  nlmsghdr header;
  if (!read_value(message, header) || header.nlmsg_type != type) return std::nullopt;
  if (header.nlmsg_len > message.size() || header.nlmsg_len < NLMSG_LENGTH(sizeof(T))) return std::nullopt;
  if (!read_value(message.subspan(NLMSG_HDRLEN), family)) return std::nullopt;
  const std::size_t offset = std::min<std::size_t>(NLMSG_SPACE(sizeof(T)), header.nlmsg_len);
  return message.subspan(offset, header.nlmsg_len - offset);
}

}  // namespace onehop::link
