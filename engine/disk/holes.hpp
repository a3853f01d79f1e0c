// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Holes: the runs of zeros in a block that need no room on the disk. Pure functions on bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace onehop::disk {

/// The unit in which file systems give room back. Shorter runs of zeros keep their room.
inline constexpr std::uint32_t hole_page_bytes = 4096;
/// Shorter: files with single zero pages (databases) get many extents. Longer: less room is saved.
inline constexpr std::uint32_t hole_bytes_min = 4 * hole_page_bytes;

struct HoleRun {
  std::uint32_t begin = 0, end = 0;  ///< begin == end: none
};

/// is_all_zero reads up to the first byte that is not zero.
[[nodiscard]] inline bool is_all_zero(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty() || bytes.front() != std::byte{0}) return bytes.empty();
  // Each byte equals the one before it.
  return std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

/// next_hole finds the first run of zero pages, hole_bytes_min at least, from page start `from`.
[[nodiscard]] inline HoleRun next_hole(std::span<const std::byte> block,
                                       std::uint32_t from) noexcept {
  HoleRun run{from, from};
  for (std::uint32_t page = from; page + hole_page_bytes <= block.size(); page += hole_page_bytes) {
    if (is_all_zero(block.subspan(page, hole_page_bytes))) {
      run.end = page + hole_page_bytes;
      continue;
    }
    if (run.end - run.begin >= hole_bytes_min) return run;
    run.begin = run.end = page + hole_page_bytes;
  }
  if (run.end - run.begin < hole_bytes_min) run.end = run.begin;
  return run;
}

}  // namespace onehop::disk
