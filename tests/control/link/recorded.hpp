// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Recorded netlink messages: hexadecimal lines (record_netlink.py) and binary files
// (tests/vm/record_nl80211.py).
#pragma once

#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace onehop::link {

using Message = std::vector<std::byte>;

/// recorded_binary gives the messages of a file, each in a buffer of its own size.
inline std::vector<Message> recorded_binary(const std::string& name) {
  std::ifstream in{std::string{ONEHOP_RECORDED} + "/nl80211/" + name, std::ios::binary};
  REQUIRE(in);
  const std::vector<char> all{std::istreambuf_iterator<char>{in}, {}};
  std::vector<Message> messages;
  for (std::size_t at = 0; at + 4 <= all.size();) {
    std::uint32_t length = 0;
    std::memcpy(&length, all.data() + at, sizeof length);
    REQUIRE(length >= 16);
    REQUIRE(at + length <= all.size());
    const auto* begin = reinterpret_cast<const std::byte*>(all.data()) + at;
    messages.emplace_back(begin, begin + length);
    at += length;
  }
  REQUIRE_FALSE(messages.empty());
  return messages;
}

}  // namespace onehop::link
