// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// TxChunks: which of a sending socket's chunks are free, lent to the engine core, or with the kernel, and the telemetry that
// follows. Pure data over the rings: no system call.
//
//   free ── lend() ──▶ lent ── commit() ──▶ tx ring ─▶ kernel ─▶ completion ring ── reclaim() ──▶ free
//
// accepted = drained + occupancy: commit() adds to the occupancy, and reclaim() alone moves bytes to what has drained.
// Engine core only; it allocates in set_up() alone.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/base/units.hpp"
#include "xdp/uapi.hpp"
#include "xdp/xsk_ring.hpp"

namespace onehop::xdp {

class TxChunks {
 public:
  static constexpr std::uint32_t no_chunk = ~0U;

  /// set_up takes `chunks` chunks of `chunk_bytes`, the first one's number in the UMEM being `first_chunk`; all are free.
  void set_up(std::uint32_t first_chunk, std::uint32_t chunks, std::uint32_t chunk_bytes) {
    first_chunk_ = first_chunk;
    chunk_bytes_ = chunk_bytes;
    sent_bytes_.assign(chunks, 0);
    free_.clear();
    free_.reserve(chunks);
    for (std::uint32_t chunk = chunks; chunk-- > 0;) free_.push_back(chunk);
  }

  /// lend returns the offset of a chunk in the UMEM, the same one until commit(); false where the kernel has all of them.
  [[nodiscard]] bool lend(ConsumerRing<std::uint64_t>& completion, std::uint64_t& offset_bytes) noexcept {
    if (lent_ == no_chunk) {
      if (free_.empty() && reclaim(completion) == 0) return false;
      lent_ = free_.back();
      free_.pop_back();
    }
    offset_bytes = std::uint64_t{first_chunk_ + lent_} * chunk_bytes_;
    return true;
  }
  [[nodiscard]] bool has_lent() const noexcept { return lent_ != no_chunk; }

  /// commit hands the lent chunk to the tx ring: `wire_bytes` from `offset_bytes` on. The kernel sees it when the ring is published.
  void commit(ProducerRing<xdp_desc>& tx, std::uint64_t offset_bytes, std::uint32_t wire_bytes) noexcept {
    ONEHOP_CHECK(lent_ != no_chunk);
    const bool is_taken = tx.push({.addr = offset_bytes, .len = wire_bytes, .options = 0});
    ONEHOP_CHECK(is_taken);  // the ring has an entry for every TX chunk
    sent_bytes_[lent_] = wire_bytes;
    occupancy_ += Bytes{wire_bytes};
    lent_ = no_chunk;
  }

  /// reclaim takes back the chunks that the kernel has finished with. Returns how many; at most one ring's worth.
  std::uint32_t reclaim(ConsumerRing<std::uint64_t>& completion) noexcept {
    const std::uint32_t done_frames = completion.acquire(completion.size());
    for (std::uint32_t i = 0; i < done_frames; ++i) {
      const auto chunk = static_cast<std::uint32_t>(completion[i] / chunk_bytes_);
      ONEHOP_CHECK(chunk >= first_chunk_ && chunk - first_chunk_ < sent_bytes_.size());
      const std::uint32_t wire_bytes = std::exchange(sent_bytes_[chunk - first_chunk_], 0U);
      ONEHOP_CHECK(wire_bytes > 0);  // the kernel returns what we lent it, and returns it once
      occupancy_ -= Bytes{wire_bytes};
      drained_total_ += Bytes{wire_bytes};
      free_.push_back(chunk - first_chunk_);
    }
    if (done_frames > 0) completion.release(done_frames);
    ONEHOP_CHECK(occupancy_ >= Bytes{0});
    if (occupancy_ == Bytes{0}) was_empty_ = true;
    return done_frames;
  }

  [[nodiscard]] Bytes occupancy() const noexcept { return occupancy_; }
  [[nodiscard]] Bytes drained_total() const noexcept { return drained_total_; }
  /// in_flight: chunks that were committed and have not come back.
  [[nodiscard]] std::size_t in_flight() const noexcept { return sent_bytes_.size() - free_.size() - (has_lent() ? 1 : 0); }
  [[nodiscard]] std::size_t chunks() const noexcept { return sent_bytes_.size(); }
  /// take_backlogged: it was never seen empty since the last call.
  [[nodiscard]] bool take_backlogged() noexcept {
    return !std::exchange(was_empty_, occupancy_ == Bytes{0}) && occupancy_ > Bytes{0};
  }

 private:
  std::uint32_t first_chunk_ = 0;
  std::uint32_t chunk_bytes_ = 0;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> sent_bytes_;  // per TX chunk: wire bytes of the frame in it; 0: not in flight
  std::uint32_t lent_ = no_chunk;
  Bytes occupancy_{};
  Bytes drained_total_{};
  bool was_empty_ = true;
};

}  // namespace onehop::xdp
