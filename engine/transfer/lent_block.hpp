// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LentBlock and Resend: what the sender knows of a block that the file thread has lent it, and of bytes of it that are
// to go out once more.
#pragma once

#include <cstdint>

#include "engine/base/block.hpp"

namespace onehop::transfer {

struct LentBlock {
  BlockRef block;
  std::uint32_t sent = 0;        ///< bytes sent for the first time
  std::uint32_t arrived = 0;
  bool is_lent = false;
  bool has_empty_frame = false;  ///< an empty file's only frame has arrived

  [[nodiscard]] bool is_whole() const noexcept { return block.length == 0 ? has_empty_frame : arrived == block.length; }
};

struct Resend {
  std::uint32_t slot = 0, offset = 0, length = 0;
};

}  // namespace onehop::transfer
