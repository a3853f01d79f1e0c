// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Addresses as they stand in frames and in netlink messages.
#pragma once

#include <array>
#include <cstddef>

namespace onehop {

using MacAddress = std::array<std::byte, 6>;
/// Network order; an IPv4 address is in the first four bytes.
using IpBytes = std::array<std::byte, 16>;

}  // namespace onehop
