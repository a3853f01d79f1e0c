// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// XskSocket owns one AF_XDP socket and the rings mapped from it.
//
//   receiving socket of queue q: UMEM, fill, completion, rx      one per receive queue, each with its own UMEM
//   sending socket:              tx, shares UMEM and completion of queue 0's receiving socket
//
// Sending has a socket of its own because poll() on a socket with a TX ring transmits in copy mode and keeps the errors
// to itself: a frame that the lower queue dropped would not be counted. A UMEM per queue, not one for all, because
// each queue needs its own fill and completion ring anyway, and so every ring has one owner and no frame ever moves
// from one queue's accounts to another's; the memory is the same.
//
// Set-up only, but for the rings and the wake-ups, which the engine core uses.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "xdp/umem.hpp"
#include "xdp/xsk_ring.hpp"

namespace onehop::xdp {

/// BindTarget: where a receiving socket goes and how.
struct BindTarget {
  std::string interface;  ///< for messages
  int ifindex = 0;
  std::uint32_t queue = 0;
  bool is_zero_copy = false;
  bool has_fragments = false;  ///< frames may span chunks (XDP_USE_SG)
};

/// set_tx_limits: descriptors per sendto(), a socket's send buffer, and its priority (0: as it is). All are wishes: a kernel
/// without the budget option moves 32 per call, and one may grant a smaller buffer, which flush() copes with. Syscalls: setsockopt.
void set_tx_limits(int xsk_fd, std::uint32_t budget_frames, int sndbuf_bytes, int priority);

class XskSocket {
 public:
  XskSocket() = default;

  /// open_rx registers `umem` and makes fill, completion and rx rings; the caller fills the fill ring and then binds.
  /// Syscalls: socket, setsockopt, getsockopt, mmap.
  [[nodiscard]] static Result<XskSocket> open_rx(const Umem& umem, std::uint32_t rx_frames,
                                                 std::uint32_t completion_frames);
  /// open_tx makes a socket with a tx ring only, to be bound with bind_shared(). Syscalls: socket, setsockopt, mmap.
  [[nodiscard]] static Result<XskSocket> open_tx(std::uint32_t tx_frames);

  /// wait_bind binds, and retries for up to two seconds while a predecessor's queue is still being torn down.
  /// Syscalls: bind, nanosleep.
  [[nodiscard]] Result<void> wait_bind(const BindTarget& target);
  [[nodiscard]] Result<void> bind_shared(const BindTarget& target, int owner_fd);

  /// is_zero_copy asks the kernel which mode it gave. Syscalls: getsockopt.
  [[nodiscard]] bool is_zero_copy() const;

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// memory is what the mapped rings take.
  [[nodiscard]] Bytes memory() const noexcept {
    return {static_cast<std::int64_t>(fill_mapping_.size() + completion_mapping_.size() + rx_mapping_.size() +
                                      tx_mapping_.size())};
  }

  ProducerRing<std::uint64_t> fill;
  ConsumerRing<std::uint64_t> completion;
  ConsumerRing<xdp_desc> rx;
  ProducerRing<xdp_desc> tx;

 private:
  [[nodiscard]] Result<void> open_fd();
  [[nodiscard]] Result<void> set_ring(int option, std::uint32_t entries, const char* name);
  [[nodiscard]] Result<RingMemory> map_ring(Mapping& mapping, int option, std::uint32_t entries);

  Mapping fill_mapping_, completion_mapping_, rx_mapping_, tx_mapping_;
  Fd fd_;  ///< declared last: closed first, so that the kernel lets go before the rings are unmapped
};

}  // namespace onehop::xdp
