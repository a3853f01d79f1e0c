// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RxChunks: the chunks of one receive queue that receive() has taken and release() gives back. Pure data over the rings: no
// system call.
//
//   rx ring ── take() ──▶ views into the UMEM, chunks held ── give_back() ──▶ fill ring
//
// Engine core only.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/base/check.hpp"
#include "engine/base/units.hpp"
#include "engine/port/port.hpp"
#include "engine/wire/l2_l4.hpp"
#include "xdp/uapi.hpp"
#include "xdp/xsk_ring.hpp"

namespace onehop::xdp {

/// fill_entries: how large the fill ring of a queue with `rx_frames` chunks has to be. The kernel shows a frame on the receive
/// ring before it shows that it took the chunk from the fill ring, so all chunks may be given back while each still has its old
/// entry. Smaller: give_back() stops the program. Larger: memory that is never used.
//= Linux net/xdp/xsk.c, xsk_flush(): submit, then release
[[nodiscard]] constexpr std::uint32_t fill_entries(std::uint32_t rx_frames) noexcept { return 2 * rx_frames; }

class RxChunks {
 public:
  /// Taken: what one take() met. `bytes` counts the frames that lay in one chunk, wire bytes.
  struct Taken {
    std::size_t views = 0;
    Bytes bytes{};
    std::uint64_t malformed_frames = 0;         ///< not one whole UDP datagram
    std::uint64_t multi_descriptor_frames = 0;  ///< larger than a chunk
  };

  /// take reads up to views.size() descriptors and fills a view for each good frame. `umem` is the whole memory.
  [[nodiscard]] Taken take(ConsumerRing<xdp_desc>& rx, std::span<std::byte> umem, std::span<RxFrame> views) noexcept {
    Taken taken;
    const std::uint32_t ready = rx.acquire(static_cast<std::uint32_t>(views.size()));
    for (std::uint32_t i = 0; i < ready; ++i) {
      const xdp_desc descriptor = rx[i];
      ONEHOP_CHECK(descriptor.addr < umem.size() && descriptor.len <= umem.size() - descriptor.addr);
      held_[held_frames_++] = descriptor.addr;
      const bool goes_on = (descriptor.options & XDP_PKT_CONTD) != 0;
      const bool is_part = goes_on || is_mid_frame_;
      if (goes_on && !is_mid_frame_) ++taken.multi_descriptor_frames;
      is_mid_frame_ = goes_on;
      if (is_part) continue;
      taken.bytes += Bytes{descriptor.len};
      const auto frame = wire::parse_udp_frame(umem.subspan(descriptor.addr, descriptor.len));
      if (!frame) {
        ++taken.malformed_frames;
        continue;
      }
      views[taken.views++] = {.data = frame->payload.data(),
                              .length = static_cast<std::uint32_t>(frame->payload.size()),
                              .is_ce = frame->ecn == wire::Ecn::ce};
    }
    if (ready > 0) rx.release(ready);
    return taken;
  }

  [[nodiscard]] bool has_held() const noexcept { return held_frames_ > 0; }

  /// give_back puts all held chunks on the fill ring and publishes it.
  void give_back(ProducerRing<std::uint64_t>& fill, std::uint32_t chunk_bytes) noexcept {
    const std::uint64_t chunk_mask = ~std::uint64_t{chunk_bytes - 1};
    for (std::uint32_t i = 0; i < held_frames_; ++i) {
      const bool is_taken = fill.push(held_[i] & chunk_mask);
      ONEHOP_CHECK(is_taken);  // fill_entries()
    }
    fill.publish();
    held_frames_ = 0;
  }

 private:
  std::array<std::uint64_t, rx_batch_max> held_{};  // descriptors taken, due back
  std::uint32_t held_frames_ = 0;
  bool is_mid_frame_ = false;                       // the last descriptor said that its frame goes on
};

}  // namespace onehop::xdp
