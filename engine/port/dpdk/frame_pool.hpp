// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FramePool: the rte_mempool of all frames of a device, with a count of what came back.
//
//   DpdkPort: get ─▶ mark(wire bytes) ─▶ rte_eth_tx_burst ─▶ driver
//             counted ◀─ enqueue ◀─ freed, at any time and by any thread ◀┘
//
// DPDK 22.11 has no call that tells how much of a TX queue is left (rte_eth_tx_queue_count came
// with 24.03), and most drivers report no descriptor's state. What every driver does is give a sent
// frame's buffer back to its pool. So the pool has a handler of its own: a frame that carries a
// mark adds its bytes to freed_bytes when it returns, in any order and by any thread. It keeps no
// per-core caches, because a return into them would not be seen.
//
// One pool serves both directions, because net_af_xdp copies what lies in another one.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

struct rte_mbuf;
struct rte_mempool;

namespace onehop::dpdk {

/// Room of a frame for headers. They end where it ends, so that the payload begins on a cache line,
/// as DPDK counts them: of 64 bytes, on arm64 of 128.
#if defined(__aarch64__)
inline constexpr std::uint32_t header_room_bytes = 128;
#else
inline constexpr std::uint32_t header_room_bytes = 64;
#endif

struct FramePoolConfig {
  std::uint32_t frames = 8192;
  std::uint32_t room_bytes = 2048;  ///< of a frame, headers included, behind DPDK's headroom
  int numa_node = -1;
  /// Frames lie back to back, also across pages: net_af_xdp counts on it, and finds the last ones
  /// outside of its memory otherwise. Not for devices that read memory themselves.
  bool is_packed = false;
};

class FramePool {
 public:
  /// register_handler makes the handler known to DPDK. Once, before EAL loads its drivers.
  [[nodiscard]] static Result<void> register_handler();
  [[nodiscard]] static Result<FramePool> make(const FramePoolConfig& config);

  [[nodiscard]] rte_mempool* get() const noexcept { return pool_.get(); }
  /// mark has a frame counted when it returns: `wire_bytes` is its length on the link, 0 takes the
  /// mark off. Each frame of the pool is unmarked when it is taken from it.
  static void mark(rte_mbuf* frame, std::uint32_t wire_bytes) noexcept;
  /// adopt: from now on the calling thread takes and frees without a lock; the one before has
  /// stopped.
  void adopt() noexcept;
  /// freed_bytes and freed_frames count marked frames that returned; they only grow. Any thread.
  [[nodiscard]] Bytes freed_bytes() const noexcept;
  [[nodiscard]] std::uint64_t freed_frames() const noexcept;
  [[nodiscard]] Bytes memory() const noexcept { return memory_; }

 private:
  struct Closer {
    void operator()(rte_mempool* pool) const noexcept;
  };
  std::unique_ptr<rte_mempool, Closer> pool_;
  Bytes memory_{};
};

}  // namespace onehop::dpdk
