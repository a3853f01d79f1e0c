// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Credit is counted in buffer bytes, the same way at both ends: a block costs block_bytes however
// short it is, so that many small files can never ask for more buffers than there are.
#pragma once

#include <cstdint>

#include "engine/base/block.hpp"

namespace onehop::protocol {

/// frame_cost: its length; of the frame that ends a block also what the block lacks to block_bytes.
[[nodiscard]] constexpr std::uint64_t frame_cost(std::uint32_t end_in_block, std::uint32_t length,
                                                 std::uint32_t block_length) noexcept {
  return length + (end_in_block == block_length ? block_bytes - block_length : 0);
}

}  // namespace onehop::protocol
