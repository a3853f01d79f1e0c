// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// XskQueue: one receive queue of an interface, and for the first queue also the sending socket.
//
//   chunk memory  | rx chunk 0 | rx chunk 1 | ... | tx chunk 0 | ... |   a descriptor's address is
//                                                                        an offset into this
//   receiving socket: UMEM, fill, completion, rx
//   sending socket:   tx; shares UMEM, fill and completion
//
// The sending socket is another one because poll() on a socket with a tx ring transmits in copy
// mode and keeps the errors to itself: a frame that the lower queue dropped would not be counted.
// Each queue has a UMEM of its own because it needs its own fill and completion ring anyway. So
// each ring has one owner, and no chunk moves from one queue's accounts to another's.
//
// Set-up only, but for the rings, which the engine core uses. libxdp has no function for wake-ups,
// statistics, options and the send buffer: these are system calls on the two descriptors.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/base/system/mapping.hpp"
#include "engine/base/units.hpp"
#include "xdp/xsk.hpp"

namespace onehop::xdp {

struct XskOptions {
  std::string interface;
  std::string driver{};  ///< for the remedy of an error
  std::uint32_t queue = 0;
  std::uint32_t chunk_bytes = 0;  ///< a power of two from 2048 to the page size
  std::uint32_t rx_frames = 0;    ///< chunks and ring entries, a power of two
  std::uint32_t tx_frames = 0;    ///< the same for sending; 0: no sending socket
  bool is_zero_copy = false;
  bool has_fragments = false;  ///< frames may take several chunks
};

/// RingMemory: what the kernel shares of one ring.
struct UnmapRing {
  std::size_t bytes = 0;
  void operator()(std::byte* address) const noexcept;
};
using RingMemory = std::unique_ptr<std::byte, UnmapRing>;

class XskQueue {
 public:
  XskQueue() = default;
  XskQueue(const XskQueue&) = delete;
  XskQueue& operator=(const XskQueue&) = delete;

  /// open maps the memory, makes the rings, fills the fill ring and binds. Once. It may block for
  /// two seconds while a predecessor's queue is torn down. The kernel charges the memory to
  /// RLIMIT_MEMLOCK unless the process has CAP_IPC_LOCK. Errors: 9, 10. Syscalls: mmap, madvise,
  /// socket, setsockopt, getsockopt, bind, fcntl, nanosleep.
  [[nodiscard]] Result<void> open(const XskOptions& options);

  [[nodiscard]] std::span<std::byte> chunks() const noexcept {
    return {memory_.data(), memory_.size()};
  }
  [[nodiscard]] std::uint32_t chunk_bytes() const noexcept { return chunk_bytes_; }
  [[nodiscard]] int rx_fd() const noexcept { return receiver_.get(); }
  [[nodiscard]] int tx_fd() const noexcept { return sender_.get(); }
  /// kick_tx tells the kernel that frames wait. Returns 0 or errno. Syscalls: sendto.
  [[nodiscard]] int kick_tx() const noexcept;
  /// memory is what chunks and rings take.
  [[nodiscard]] Bytes memory() const noexcept;

  xsk_ring_prod fill{}, tx{};
  xsk_ring_cons completion{}, rx{};

 private:
  [[nodiscard]] Result<void> register_memory(const XskOptions& options);
  [[nodiscard]] Result<void> bind_sockets(const XskOptions& options);

  std::uint32_t chunk_bytes_ = 0;
  Mapping memory_;
  std::array<RingMemory, 4> rings_;
  Fd receiver_, sender_;  // close first: the kernel lets go of the memory then
};

/// TxLimits: descriptors per sendto(), a socket's send buffer, and its priority (0: as it is).
struct TxLimits {
  std::uint32_t budget_frames = 0;
  int sndbuf_bytes = 0;
  int priority = 0;
};

/// set_tx_limits: a kernel without the budget option moves 32 descriptors per call, and it may
/// grant a smaller buffer: flush() copes with both. Syscalls: setsockopt.
void set_tx_limits(int xsk_fd, const TxLimits& limits);

/// widen_sockets sets the limits of every AF_XDP socket of this process, for `tx_frames` of
/// `frame_bytes`. DPDK's net_af_xdp keeps its descriptors to itself and leaves the send buffer at
/// net.core.wmem_default, which holds 93 copies of full frames where that is 212992, and spins in
/// sendto() while they are out. Syscalls: openat, getdents64, getsockopt, setsockopt.
void widen_sockets(std::uint32_t tx_frames, std::uint32_t frame_bytes, int priority);

}  // namespace onehop::xdp
