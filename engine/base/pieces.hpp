// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Pieces: bytes in one place or in several, in order, as a frame in several AF_XDP chunks.
//
//   | first ... |   | rest[0] ... |   | rest[1] ... |
//
// A view: it owns nothing, and the caller keeps the list behind `rest`.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>

namespace onehop {

struct Pieces {
  std::span<const std::byte> first;
  std::span<const std::span<const std::byte>> rest{};

  constexpr Pieces() = default;
  /// What is a span is one piece: most frames are.
  template <std::convertible_to<std::span<const std::byte>> Bytes>
  constexpr Pieces(const Bytes& whole) noexcept : first{whole} {}
  constexpr Pieces(std::span<const std::byte> head,
                   std::span<const std::span<const std::byte>> others) noexcept
      : first{head}, rest{others} {}

  [[nodiscard]] constexpr bool is_one() const noexcept { return rest.empty(); }
  [[nodiscard]] constexpr std::size_t size() const noexcept {
    std::size_t bytes = first.size();
    for (const auto piece : rest) bytes += piece.size();
    return bytes;
  }
  /// without_head drops the first `n` bytes, which must all lie in the first piece.
  [[nodiscard]] constexpr Pieces without_head(std::size_t n) const noexcept {
    return {first.subspan(n), rest};
  }
  /// each calls visit(piece) for what lies in [from, to), until one is false; true: none was.
  template <class Visit>
  bool each(std::size_t from, std::size_t to, Visit visit) const noexcept {
    std::size_t at = 0;
    for (std::size_t i = 0; i <= rest.size() && at < to; ++i) {
      const auto piece = i == 0 ? first : rest[i - 1];
      const std::size_t begin = from > at ? from - at : 0;
      const std::size_t end = to - at < piece.size() ? to - at : piece.size();
      at += piece.size();
      if (begin < end && !visit(piece.subspan(begin, end - begin))) return false;
    }
    return true;
  }
  /// copy_to writes [from, to) to `out`, one piece after the other.
  void copy_to(std::byte* out, std::size_t from, std::size_t to) const noexcept {
    (void)each(from, to, [&](std::span<const std::byte> piece) {
      std::memcpy(out, piece.data(), piece.size());
      out += piece.size();
      return true;
    });
  }
};

}  // namespace onehop
