// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// TxChunks: which of a sending socket's chunks are free, lent to the engine core, or with the
// kernel, and the telemetry that follows. Pure data over the rings: no system call.
//
//   free ─ lend() ─▶ lent ─ commit() ─▶ tx ring ─ publish() ─▶ kernel
//     ▲                                                           │
//     └───────────────── reclaim() ── completion ring ◀───────────┘
//
// What is lent is a slot: as many adjacent chunks as a full frame takes, one where the MTU fits
// one. A frame is a descriptor for each chunk that it reaches into, and its slot is free again when
// the kernel has given all of them back. accepted = drained + occupancy: commit() adds to the
// occupancy, and reclaim() alone moves bytes to what has drained. Engine core only; only set_up()
// allocates.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/base/units.hpp"
#include "xdp/xsk.hpp"

namespace onehop::xdp {

class TxChunks {
 public:
  /// set_up takes `chunks` chunks of `chunk_bytes`, the first one's number in the UMEM being
  /// `first_chunk`, and makes slots of `slot_chunks` of them; all are free.
  void set_up(std::uint32_t first_chunk, std::uint32_t chunks, std::uint32_t chunk_bytes,
              std::uint32_t slot_chunks) {
    ONEHOP_CHECK(slot_chunks > 0 && slot_chunks <= chunks);
    first_chunk_ = first_chunk;
    chunk_bytes_ = chunk_bytes;
    slot_chunks_ = slot_chunks;
    sent_.assign(chunks / slot_chunks, {});
    free_.clear();
    free_.reserve(sent_.size());
    for (auto slot = static_cast<std::uint32_t>(sent_.size()); slot-- > 0;) free_.push_back(slot);
  }

  /// lend gives a slot's offset in the UMEM, the same until commit(); false: the kernel has all.
  [[nodiscard]] bool lend(xsk_ring_cons& completion, std::uint64_t& offset_bytes) noexcept {
    if (lent_ == no_slot) {
      if (free_.empty() && reclaim(completion) == 0) return false;
      lent_ = free_.back();
      free_.pop_back();
    }
    offset_bytes = std::uint64_t{first_chunk_ + lent_ * slot_chunks_} * chunk_bytes_;
    return true;
  }

  /// commit puts the lent slot into the tx ring: `wire_bytes` from `offset_bytes` on. All
  /// descriptors of a frame but the last carry XDP_PKT_CONTD.
  //= Linux Documentation/networking/af_xdp.rst, "XDP_PKT_CONTD"
  void commit(xsk_ring_prod& tx, std::uint64_t offset_bytes, std::uint32_t wire_bytes) noexcept {
    ONEHOP_CHECK(lent_ != no_slot);
    Sent& sent = sent_[lent_];
    sent.wire_bytes = wire_bytes;
    for (std::uint32_t left = wire_bytes; left > 0; ++sent.descriptors) {
      const auto room = static_cast<std::uint32_t>(chunk_bytes_ - offset_bytes % chunk_bytes_);
      const std::uint32_t piece = left < room ? left : room;
      left -= piece;
      std::uint32_t index = 0;
      const std::uint32_t reserved = xsk_ring_prod__reserve(&tx, 1, &index);
      ONEHOP_CHECK(reserved == 1);  // the ring has an entry for every TX chunk
      *xsk_ring_prod__tx_desc(&tx, index) = {
          .addr = offset_bytes,
          .len = piece,
          .options = left > 0 ? std::uint32_t{XDP_PKT_CONTD} : 0U};
      offset_bytes += piece;
    }
    ONEHOP_CHECK(sent.descriptors <= slot_chunks_);
    in_flight_ += sent.descriptors;
    unpublished_ += sent.descriptors;
    occupancy_ += Bytes{wire_bytes};
    lent_ = no_slot;
  }

  /// publish shows the kernel what was committed.
  void publish(xsk_ring_prod& tx) noexcept {
    if (unpublished_ > 0) xsk_ring_prod__submit(&tx, std::exchange(unpublished_, 0U));
  }

  /// reclaim takes back the chunks that the kernel has finished with; how many slots that frees.
  std::uint32_t reclaim(xsk_ring_cons& completion) noexcept {
    std::uint32_t first = 0;
    const std::uint32_t done_chunks = peek(completion, completion.size, first);
    std::uint32_t freed = 0;
    for (std::uint32_t i = 0; i < done_chunks; ++i) {
      const std::uint64_t offset_bytes = *xsk_ring_cons__comp_addr(&completion, first + i);
      const auto chunk = static_cast<std::uint32_t>(offset_bytes / chunk_bytes_);
      ONEHOP_CHECK(chunk >= first_chunk_);
      const std::uint32_t slot = (chunk - first_chunk_) / slot_chunks_;
      ONEHOP_CHECK(slot < sent_.size());
      Sent& sent = sent_[slot];
      ONEHOP_CHECK(sent.descriptors > 0);  // the kernel returns what we lent it, and once
      --in_flight_;
      if (--sent.descriptors > 0) continue;
      occupancy_ -= Bytes{sent.wire_bytes};
      drained_total_ += Bytes{sent.wire_bytes};
      free_.push_back(slot);
      ++freed;
    }
    if (done_chunks > 0) xsk_ring_cons__release(&completion, done_chunks);
    ONEHOP_CHECK(occupancy_ >= Bytes{0});
    if (occupancy_ == Bytes{0}) was_empty_ = true;
    return freed;
  }

  /// continue_from counts on where `before` ended; what it had in flight has left.
  void continue_from(const TxChunks& before) noexcept {
    drained_total_ = before.drained_total_ + before.occupancy_;
  }

  [[nodiscard]] Bytes occupancy() const noexcept { return occupancy_; }
  [[nodiscard]] Bytes drained_total() const noexcept { return drained_total_; }
  /// in_flight: chunks that were committed and have not come back.
  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_; }
  [[nodiscard]] std::size_t slots() const noexcept { return sent_.size(); }
  /// take_backlogged: it was never seen empty since the last call.
  [[nodiscard]] bool take_backlogged() noexcept {
    return !std::exchange(was_empty_, occupancy_ == Bytes{0}) && occupancy_ > Bytes{0};
  }

 private:
  static constexpr std::uint32_t no_slot = ~0U;

  // The frame in a slot, and how many of its descriptors the kernel still has (0: not in flight).
  struct Sent {
    std::uint32_t wire_bytes = 0, descriptors = 0;
  };

  std::uint32_t first_chunk_ = 0;
  std::uint32_t chunk_bytes_ = 0;
  std::uint32_t slot_chunks_ = 1;
  std::vector<std::uint32_t> free_;
  std::vector<Sent> sent_;
  std::uint32_t lent_ = no_slot;
  std::uint32_t unpublished_ = 0;  // descriptors
  std::size_t in_flight_ = 0;
  Bytes occupancy_{};
  Bytes drained_total_{};
  bool was_empty_ = true;
};

}  // namespace onehop::xdp
