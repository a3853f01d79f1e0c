// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RxChunks: a queue's chunks between receive() and release(). Pure data, no system call.
//
//   rx ring ── take() ──▶ views into the UMEM, chunks held ── give_back() ──▶ fill ring
//
// Engine core only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "engine/base/check.hpp"
#include "engine/base/units.hpp"
#include "engine/port/port.hpp"
#include "engine/wire/l2_l4.hpp"
#include "xdp/afxdp_layout.hpp"
#include "xdp/xsk.hpp"

namespace onehop::xdp {

/// fill_entries: how large the fill ring of a queue with `rx_frames` chunks has to be. The kernel
/// shows a frame on the receive ring before it shows that it took the chunk from the fill ring, so
/// all chunks may be given back while each still has its entry. Smaller: give_back() stops us.
//= Linux net/xdp/xsk.c, xsk_flush(): submit, then release
[[nodiscard]] constexpr std::uint32_t fill_entries(std::uint32_t rx_frames) noexcept {
  return 2 * rx_frames;
}

/// Pieces of a received frame at most. Too few: no 9 KB from half-filled ones. Too many: memory.
inline constexpr std::uint32_t frame_pieces_max = 8;

/// Descriptors of the largest frame that the kernel hands over: one and MAX_SKB_FRAGS.
//= Linux include/linux/skbuff.h, MAX_SKB_FRAGS; net/xdp/xsk.c, __xsk_rcv()
inline constexpr std::uint32_t descriptors_per_frame_max = 18;

class RxChunks {
 public:
  /// Taken: what one take() met. `bytes` are wire bytes of all frames.
  struct Taken {
    std::size_t views = 0;
    Bytes bytes{};
    /// Not one whole UDP datagram, or in more chunks than a frame may take.
    std::uint64_t malformed_frames = 0;
  };

  /// take reads whole frames and fills a view for each good one, up to views.size() of at most
  /// rx_batch_max. `umem` is the whole memory. The kernel shows all descriptors of a frame at once;
  /// a frame that is cut by the end of the batch is left for the next take().
  //= Linux net/xdp/xsk.c, xsk_rcv() and xsk_flush()
  [[nodiscard]] Taken take(xsk_ring_cons& rx, std::span<std::byte> umem,
                           std::span<RxFrame> views) noexcept {
    Taken taken;
    const auto frames_max = static_cast<std::uint32_t>(std::min(views.size(), rx_batch_max));
    std::uint32_t at = 0;
    const std::uint32_t ready = peek(rx, std::max(frames_max, descriptors_per_frame_max), at);
    std::uint32_t done = 0;
    for (std::uint32_t frames = 0; frames < frames_max; ++frames) {
      std::uint32_t count = 1;
      while (done + count <= ready && goes_on(rx, at + count - 1)) ++count;
      if (done + count > ready || held_chunks_ + count > held_.size()) break;
      take_frame(rx, at, count, umem, views, taken);
      at += count;
      done += count;
    }
    xsk_ring_cons__cancel(&rx, ready - done);
    if (done > 0) xsk_ring_cons__release(&rx, done);
    return taken;
  }

  /// chunk_room: bytes of a frame that the driver puts into a chunk before it takes another.
  [[nodiscard]] std::uint32_t chunk_room(std::uint32_t chunk_bytes) const noexcept {
    return std::min(chunk_room_, rx_frame_bytes_max(chunk_bytes));
  }

  [[nodiscard]] bool has_held() const noexcept { return held_chunks_ > 0; }

  /// give_back puts all held chunks on the fill ring and publishes it.
  void give_back(xsk_ring_prod& fill, std::uint32_t chunk_bytes) noexcept {
    const std::uint64_t chunk_mask = ~std::uint64_t{chunk_bytes - 1};
    std::uint32_t index = 0;
    const std::uint32_t reserved = xsk_ring_prod__reserve(&fill, held_chunks_, &index);
    ONEHOP_CHECK(reserved == held_chunks_);  // fill_entries()
    for (std::uint32_t i = 0; i < held_chunks_; ++i)
      *xsk_ring_prod__fill_addr(&fill, index + i) = held_[i] & chunk_mask;
    xsk_ring_prod__submit(&fill, held_chunks_);
    held_chunks_ = 0;
    pieces_ = 0;
  }

 private:
  using Piece = std::span<const std::byte>;

  [[nodiscard]] static bool goes_on(const xsk_ring_cons& rx, std::uint32_t index) noexcept {
    return (xsk_ring_cons__rx_desc(&rx, index)->options & XDP_PKT_CONTD) != 0;
  }

  void take_frame(const xsk_ring_cons& rx, std::uint32_t at, std::uint32_t count,
                  std::span<std::byte> umem, std::span<RxFrame> views, Taken& taken) noexcept {
    std::size_t frame_bytes = 0;
    for (std::uint32_t i = at; i != at + count; ++i) {
      const xdp_desc& descriptor = *xsk_ring_cons__rx_desc(&rx, i);
      ONEHOP_CHECK(descriptor.addr < umem.size());
      ONEHOP_CHECK(descriptor.len <= umem.size() - descriptor.addr);
      held_[held_chunks_++] = descriptor.addr;
      frame_bytes += descriptor.len;
    }
    taken.bytes += Bytes{static_cast<std::int64_t>(frame_bytes)};
    if (count > frame_pieces_max) {
      ++taken.malformed_frames;
      return;
    }
    const xdp_desc& first = *xsk_ring_cons__rx_desc(&rx, at);
    if (count > 1) chunk_room_ = std::clamp(first.len, chunk_room_min, chunk_room_);
    const auto frame = wire::parse_udp_frame(umem.subspan(first.addr, first.len), frame_bytes);
    if (!frame) {
      ++taken.malformed_frames;
      return;
    }
    RxFrame& view = views[taken.views++];
    view = {.data = frame->payload.data(),
            .length = static_cast<std::uint32_t>(frame->payload.size()),
            .is_ce = frame->ecn == wire::Ecn::ce};
    if (count > 1)
      view.rest =
          rest_of(rx, at + 1, count - 1, umem, frame->payload_bytes - frame->payload.size());
  }

  // The further pieces, as far as the datagram goes: what follows it is padding.
  std::span<const Piece> rest_of(const xsk_ring_cons& rx, std::uint32_t at, std::uint32_t count,
                                 std::span<std::byte> umem, std::size_t bytes) noexcept {
    const std::uint32_t begin = pieces_;
    for (std::uint32_t i = at; i != at + count && bytes > 0; ++i) {
      const xdp_desc& descriptor = *xsk_ring_cons__rx_desc(&rx, i);
      const std::size_t length = std::min<std::size_t>(descriptor.len, bytes);
      rest_[pieces_++] = umem.subspan(descriptor.addr, length);
      bytes -= length;
    }
    return std::span{rest_}.subspan(begin, pieces_ - begin);
  }

  // No driver's: the capacity stays sane whatever is shown.
  static constexpr std::uint32_t chunk_room_min = 256;

  std::array<std::uint64_t, rx_batch_max> held_{};  // descriptors taken, due back
  std::array<Piece, rx_batch_max> rest_{};          // of the views that take() filled
  std::uint32_t held_chunks_ = 0;
  std::uint32_t pieces_ = 0;
  std::uint32_t chunk_room_ = ~0U;
};

}  // namespace onehop::xdp
