// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/rings/maps.hpp"

#include <linux/if_xdp.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace onehop::rings {

namespace {

struct Piece {
  std::uint64_t begin = 0, end = 0, offset = 0, inode = 0;
};

/// take reads a number up to `behind`, which must follow it.
std::optional<std::uint64_t> take(std::string_view& text, int base, std::string_view behind) {
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value, base);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.starts_with(behind)) return std::nullopt;
  text.remove_prefix(behind.size());
  return value;
}

/// piece_in reads a line; nothing where it maps no socket.
std::optional<Piece> piece_in(std::string_view line) {
  const auto begin = take(line, 16, "-"), end = take(line, 16, " ");
  constexpr std::size_t access_columns = 5;  // "rw-s "
  if (!begin || !end || line.size() < access_columns || *end <= *begin) return std::nullopt;
  line.remove_prefix(access_columns);
  const auto offset = take(line, 16, " ");
  const auto major = take(line, 16, ":"), minor = take(line, 16, " ");
  const auto inode = take(line, 10, " ");
  if (!offset || !major || !minor || !inode || *inode == 0) return std::nullopt;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  constexpr std::string_view socket = "socket:[";
  if (!line.starts_with(socket)) return std::nullopt;
  line.remove_prefix(socket.size());
  if (take(line, 10, "]") != inode || !line.empty()) return std::nullopt;
  return Piece{*begin, *end, *offset, *inode};
}

std::optional<RingKind> kind_at(std::uint64_t offset) {
  switch (offset) {
    case XDP_PGOFF_RX_RING: return RingKind::rx;
    case XDP_PGOFF_TX_RING: return RingKind::tx;
    case XDP_UMEM_PGOFF_FILL_RING: return RingKind::fill;
    case XDP_UMEM_PGOFF_COMPLETION_RING: return RingKind::completion;
    default: return std::nullopt;
  }
}

}  // namespace

std::vector<RingMapping> mappings_in(std::string_view maps) {
  std::vector<RingMapping> found;
  std::optional<Piece> before;  // the piece of the line before, where that was added to `found`
  while (!maps.empty()) {
    const std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(line.size() + 1, maps.size()));
    const auto piece = piece_in(line);
    const auto last = std::exchange(before, std::nullopt);
    if (!piece) continue;
    if (last && last->inode == piece->inode && last->end == piece->begin &&
        last->offset + (last->end - last->begin) == piece->offset) {
      found.back().bytes += piece->end - piece->begin;
      before = piece;
      continue;
    }
    const auto kind = kind_at(piece->offset);
    const auto is_same = [&](const RingMapping& ring) {
      return ring.inode == piece->inode && ring.kind == kind;
    };
    if (!kind || std::ranges::any_of(found, is_same)) continue;
    found.push_back({piece->inode, *kind, piece->begin, piece->end - piece->begin});
    before = piece;
  }
  return found;
}

}  // namespace onehop::rings
