// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// NetlinkBuilder writes one netlink message attribute by attribute, with random values, for targets
// that read such messages. What does not fit is left out.
#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <random>
#include <span>
#include <string_view>

namespace onehop::fuzz {

class NetlinkBuilder {
 public:
  NetlinkBuilder(std::mt19937_64& random, std::span<std::byte> out) : random_{random}, out_{out} {}

  /// head begins the message; `family` is what stands behind the netlink header.
  template <class Family>
  void head(std::uint16_t type, const Family& family) {
    const nlmsghdr header{
        .nlmsg_len = 0, .nlmsg_type = type, .nlmsg_flags = 0, .nlmsg_seq = 1, .nlmsg_pid = 0};
    std::memcpy(out_.data(), &header, sizeof header);
    std::memcpy(out_.data() + NLMSG_HDRLEN, &family, sizeof family);
    at_ = NLMSG_SPACE(sizeof family);
  }
  /// put writes an attribute of `bytes` random bytes.
  void put(std::uint16_t type, std::size_t bytes) {
    put_with(type, bytes, [this](std::size_t) { return static_cast<std::byte>(random_()); });
  }
  void put_text(std::uint16_t type, std::string_view text) {
    put_with(type, text.size() + 1, [text](std::size_t i) {
      return i < text.size() ? static_cast<std::byte>(text[i]) : std::byte{0};
    });
  }
  /// maybe puts some of the attributes, each of `bytes`.
  void maybe(std::initializer_list<int> types, std::size_t bytes) {
    for (const int type : types) {
      if (random_() % 2 == 0) put(static_cast<std::uint16_t>(type), bytes);
    }
  }
  template <class F>
  void nest(std::uint16_t type, F&& fill) {
    if (at_ + NLA_HDRLEN > out_.size()) return;
    const std::size_t begin = at_;
    at_ += NLA_HDRLEN;
    fill();
    const nlattr header{.nla_len = static_cast<std::uint16_t>(at_ - begin),
                        .nla_type = static_cast<std::uint16_t>(type | NLA_F_NESTED)};
    std::memcpy(out_.data() + begin, &header, sizeof header);
  }
  /// end writes the length, and returns it.
  std::size_t end() {
    const auto length = static_cast<std::uint32_t>(at_);
    std::memcpy(out_.data(), &length, sizeof length);
    return at_;
  }

 private:
  template <class Byte>
  void put_with(std::uint16_t type, std::size_t bytes, Byte&& byte) {
    if (at_ + NLA_HDRLEN + NLA_ALIGN(bytes) > out_.size()) return;
    const nlattr header{.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + bytes),
                        .nla_type = type};
    std::memcpy(out_.data() + at_, &header, sizeof header);
    at_ += NLA_HDRLEN;
    for (std::size_t i = 0; i < NLA_ALIGN(bytes); ++i)
      out_[at_ + i] = i < bytes ? byte(i) : std::byte{0};
    at_ += NLA_ALIGN(bytes);
  }

  std::mt19937_64& random_;
  std::span<std::byte> out_;
  std::size_t at_ = 0;
};

}  // namespace onehop::fuzz
