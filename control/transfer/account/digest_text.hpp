// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Digests in hexadecimal, as events and receipts have them.
#pragma once

#include <fmt/ranges.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/block.hpp"

namespace onehop::transfer {

[[nodiscard]] inline std::string hex(std::span<const std::byte> bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}
/// hex of what a digest of this kind (crypto::digest_name) fills.
[[nodiscard]] inline std::string hex(const Digest& digest, std::string_view kind) {
  return hex(std::span{digest}.first(kind == "sha256" ? 32 : 16));
}

}  // namespace onehop::transfer
