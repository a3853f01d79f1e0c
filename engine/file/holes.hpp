// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Holes: the runs of zeros in a block that need no room on the disk. Pure functions on bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace onehop::file {

/// The unit in which file systems give room back. Smaller ones keep their own.
inline constexpr std::uint32_t hole_page_bytes = 4096;
/// Shorter: files that hold single zero pages (databases) are cut into many extents. Longer: less room is saved.
inline constexpr std::uint32_t hole_bytes_min = 4 * hole_page_bytes;

struct HoleRun {
  std::uint32_t begin = 0, end = 0;  ///< begin == end: none
};

/// is_all_zero reads up to the first byte that is not zero.
[[nodiscard]] bool is_all_zero(std::span<const std::byte> bytes) noexcept;
/// next_hole finds the first run of whole zero pages of at least hole_bytes_min at or after `from`, a multiple of a page.
[[nodiscard]] HoleRun next_hole(std::span<const std::byte> block, std::uint32_t from) noexcept;

}  // namespace onehop::file
