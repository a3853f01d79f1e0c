// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// DpdkPort: DPDK as a Port (engine/port/port.hpp), on one device with one queue each way.
//
//   sending    lend ─▶ [headers | sealed frame] ─ commit ─▶ pending
//              ─ flush: rte_eth_tx_burst ─▶ driver's ring ─▶ NIC, memif, XSK )))
//              mbuf back in the device's pool ◀─ freed by the driver, counted there ◀┘
//
//   receiving  driver's ring ─ rte_eth_rx_burst ─▶ UDP to our address and port?
//              ├─ yes ─▶ view into the mbuf ─ release ─▶ pool
//              └─ ARP, neighbour discovery, where DPDK owns the link ─▶ peer_mac
//
// Files: eal_arguments, eal (DPDK's environment) · output_capture (what it prints) · frame_pool
// (rte_mempool with a count) · dpdk_device (bring-up, what the driver can tell) · interrupt_gate
// (the driver's control thread) · peer_mac (link addresses) ·
// dpdk_port, dpdk_rx (the data path) · module, load (how the program comes to them). Only this
// folder's .cpp files include DPDK.
//
// Everything after open() is for the engine core alone, except wake(). It allocates nothing. It
// locks in two places: in the pool, where a driver may free on a thread of its own, and at
// interrupt_gate, while the link is idle. System calls that a driver makes inside are not counted.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "engine/base/message.hpp"
#include "engine/base/result.hpp"
#include "engine/base/system/wake_fd.hpp"
#include "engine/base/telemetry.hpp"
#include "engine/port/dpdk/dpdk_device.hpp"
#include "engine/port/dpdk/peer_mac.hpp"
#include "engine/port/port.hpp"
#include "engine/port/udp_reservation.hpp"
#include "engine/wire/l2_l4.hpp"

struct rte_mbuf;

namespace onehop {

class DpdkPort final : public dpdk::ModulePort {
 public:
  /// open reserves the UDP port and steers. The device outlives the port and has one port at a
  /// time. Errors: 2 address. Syscalls: socket, setsockopt, bind, getsockname, eventfd2.
  [[nodiscard]] static Result<std::unique_ptr<DpdkPort>> open(dpdk::DpdkDevice& device,
                                                              DpdkPortConfig config);
  ~DpdkPort() override;

  // The Port concept.
  [[nodiscard]] std::span<std::byte> lend(std::size_t frame_bytes) noexcept override;
  void commit(std::size_t frame_bytes) noexcept override;
  std::size_t flush(Instant now) noexcept override;
  [[nodiscard]] std::size_t receive(std::span<RxFrame> views) noexcept override;
  void release() noexcept override;
  [[nodiscard]] QueueTelemetry tx_queue(Instant now) noexcept override;
  [[nodiscard]] QueueTelemetry rx_ring(Instant now) noexcept override;
  /// While frames are wanted, it looks every 50 us. Syscalls: ppoll, read.
  std::uint32_t wait(Instant deadline, bool is_rx_wanted) noexcept override;
  void update_path(const PathUpdate& update) noexcept override;
  [[nodiscard]] std::uint64_t syscalls_total() const noexcept override { return syscalls_total_; }
  [[nodiscard]] PortInfo info() const noexcept override;
  [[nodiscard]] int last_error() const noexcept override { return last_error_; }

  /// wake ends a wait() from another thread. Syscalls: write.
  void wake() noexcept override { wake_.wake(); }

  [[nodiscard]] std::uint16_t local_port() const noexcept override { return reservation_.port(); }

 private:
  static constexpr std::uint32_t batch_frames_max = 64;

  DpdkPort(dpdk::DpdkDevice& device, UdpReservation reservation, WakeFd wake,
           std::uint32_t tx_frames_max);

  // Sending.
  [[nodiscard]] rte_mbuf* take_frame() noexcept;
  void refill_spare() noexcept;
  [[nodiscard]] std::uint32_t pending_frames() const noexcept { return tail_ - head_; }
  [[nodiscard]] std::uint64_t outstanding_frames() const noexcept;
  [[nodiscard]] Bytes occupancy() noexcept;
  void reclaim(Instant now) noexcept;
  void watch_link(Instant now) noexcept;
  void watch_gate(Instant now, bool is_up) noexcept;
  // Link addresses.
  void resolve(Instant now) noexcept;
  void send_control(std::size_t bytes) noexcept;
  void follow_peer_mac() noexcept;
  // Receiving.
  void pull() noexcept;
  [[nodiscard]] bool take_view(rte_mbuf* frame, RxFrame& view) noexcept;
  [[nodiscard]] bool is_ours(const wire::UdpFrame& frame) const noexcept;
  void read_statistics(Instant now) noexcept;

  // Set at open.
  dpdk::DpdkDevice& device_;
  UdpReservation reservation_;
  WakeFd wake_;
  const std::uint16_t port_;
  const dpdk::TxCount tx_count_;
  const bool is_ipv6_;
  const bool has_own_link_;
  const IpBytes local_ip_;
  std::uint32_t wire_overhead_bytes_ = 0;
  std::size_t frame_bytes_max_ = 0;
  std::uint64_t missed_before_ = 0, errors_before_ = 0;  // the device's counts at open

  // Written by the engine core.
  std::array<std::byte, wire::l2_l4_bytes_max> header_{};
  std::size_t header_bytes_ = 0;
  wire::HeaderTemplate template_;
  bool has_path_ = false;
  IpBytes peer_ip_{};
  dpdk::PeerMac peer_mac_;
  std::array<std::byte, dpdk::neighbour_bytes_max> control_frame_{};
  std::uint32_t wire_frame_bytes_ = 0;

  std::vector<rte_mbuf*> pending_;  // ring of frames committed and not taken by the driver
  std::uint32_t head_ = 0, tail_ = 0;
  // Taken from the pool, not lent yet; lent in their order.
  std::array<rte_mbuf*, 2 * batch_frames_max> spare_{};
  std::uint32_t spare_begin_ = 0, spare_end_ = 0;
  rte_mbuf* lent_ = nullptr;
  Bytes accepted_total_{};
  std::uint64_t accepted_frames_ = 0;
  Bytes pending_bytes_{};
  Bytes drained_total_{};
  Bytes freed_before_{};  // the pool's counts at open
  std::uint64_t freed_frames_before_ = 0;
  bool was_empty_ = true;
  Instant reclaimed_at_{};
  Instant linked_at_{};
  Instant serviced_at_{};
  std::uint64_t received_frames_ = 0;  // received, of any kind
  std::uint64_t received_before_ = 0;  // as of the last look at the link

  std::array<rte_mbuf*, batch_frames_max> stash_{};  // received, not looked at yet
  std::uint32_t stash_begin_ = 0, stash_end_ = 0;
  bool is_burst_full_ = false;
  std::array<rte_mbuf*, batch_frames_max> held_{};  // lent to the caller until release()
  std::uint32_t held_frames_ = 0;
  Bytes received_total_{};
  std::uint64_t rx_refused_total_ = 0, tx_refused_total_ = 0;
  Instant statistics_at_{};
  int last_error_ = 0;
  std::uint64_t syscalls_total_ = 0;
};

static_assert(Port<DpdkPort>);

}  // namespace onehop
