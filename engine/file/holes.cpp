// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/file/holes.hpp"

#include <cstring>

namespace onehop::file {

bool is_all_zero(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty() || bytes.front() != std::byte{0}) return bytes.empty();
  return std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;  // each byte equals the one before it
}

HoleRun next_hole(std::span<const std::byte> block, std::uint32_t from) noexcept {
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

}  // namespace onehop::file
