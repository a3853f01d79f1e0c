// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// libxdp's xsk.h, and a guard for each thing that release 1.3.1 (Debian 12) does wrong or lacks.
//
//   fill        xsk_ring_prod  ours ─▶ kernel  offsets of chunks to receive into
//   rx          xsk_ring_cons  kernel ─▶ ours  xdp_desc of frames received
//   tx          xsk_ring_prod  ours ─▶ kernel  xdp_desc of frames to send
//   completion  xsk_ring_cons  kernel ─▶ ours  offsets of chunks that the kernel has finished with
//
//   entries   [ .. | done | in use .. in use | free .. ]   index & mask is the slot; indices wrap
//                         ^ consumer           ^ producer  at 2^32; the difference is the level
//
// The ring functions are inline and work on any memory: tests and the simulator play the kernel.
//
// Sockets and rings are opened by system calls of our own (xsk_queue.cpp), since libxdp's functions
// make their sockets themselves, for which this process may lack the right.
//
// What is guarded:
//   1. xsk_ring_cons__peek() asks for the kernel's index only when no entry is left that it knows
//      of, so batches end early; and no function tells how full a ring is. See peek(), waiting().
//   2. A bind does not wait for the queue of a run that has just ended: EBUSY. wait_while_busy()
//      does.
#pragma once

#include <xdp/xsk.h>

#include <cerrno>
#include <cstdint>
#include <thread>

#include "engine/base/check.hpp"
#include "engine/base/units.hpp"

// Newer than the kernel headers of Debian 12. Values: include/uapi/linux/if_xdp.h of Linux 6.18. A
// kernel that does not know one answers EINVAL or ENOPROTOOPT; callers tolerate or name that.
#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)  // bind flag, Linux 6.6: a frame may take several chunks
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)  // descriptor option: the frame goes on in the next descriptor
#endif
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9  // socket option, Linux 6.17: descriptors per sendto(), copy mode
#endif

namespace onehop::xdp {

/// read_indices takes over the indices that a ring has now. Nothing may be reserved or peeked.
inline void read_indices(xsk_ring_prod& ring) noexcept {
  ring.cached_prod = *ring.producer;
  ring.cached_cons = __atomic_load_n(ring.consumer, __ATOMIC_ACQUIRE) + ring.size;
}
inline void read_indices(xsk_ring_cons& ring) noexcept {
  ring.cached_cons = *ring.consumer;
  ring.cached_prod = __atomic_load_n(ring.producer, __ATOMIC_ACQUIRE);
}

/// waiting asks the kernel how many entries we have not peeked yet.
[[nodiscard]] inline std::uint32_t waiting(xsk_ring_cons& ring) noexcept {
  ring.cached_prod = __atomic_load_n(ring.producer, __ATOMIC_ACQUIRE);
  return ring.cached_prod - ring.cached_cons;
}

/// unconsumed asks the kernel how many entries, submitted or only reserved, it has not taken.
[[nodiscard]] inline std::uint32_t unconsumed(xsk_ring_prod& ring) noexcept {
  return ring.size - xsk_prod_nb_free(&ring, ring.size);
}

/// peek is xsk_ring_cons__peek() of all that is there now, at most entries_max. `first` is the
/// index of the first entry. The caller cancels or releases each one.
[[nodiscard]] inline std::uint32_t peek(xsk_ring_cons& ring, std::uint32_t entries_max,
                                        std::uint32_t& first) noexcept {
  if (ring.cached_prod - ring.cached_cons < entries_max) ONEHOP_CHECK(waiting(ring) <= ring.size);
  return xsk_ring_cons__peek(&ring, entries_max, &first);
}

/// wait_while_busy repeats `create` while it returns -EBUSY, for two seconds at most.
///
/// The kernel frees the queue of a closed socket later: on veth within 20 ms; with a deep queue
/// below the device, when that has drained (17 of 87 immediate re-binds gave EBUSY). Too low: a
/// second run fails. Too high: a real conflict is reported late.
template <class Create>
[[nodiscard]] int wait_while_busy(const Create& create) {
  constexpr Nanos patience = 2s;
  constexpr Nanos retry_interval = 10ms;
  int rc = create();
  for (Nanos waited{0}; rc == -EBUSY && waited < patience; waited += retry_interval) {
    std::this_thread::sleep_for(retry_interval);
    rc = create();
  }
  return rc;
}

}  // namespace onehop::xdp
