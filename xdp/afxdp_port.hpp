// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AfXdpPort: AF_XDP as a Port (engine/port/port.hpp), straight on the kernel's interface.
//
//   lend ─▶ [64 B headers | sealed frame] ─ commit ─▶ tx ring ─ flush: one sendto ─▶ kernel ─▶ driver or lower queue )))
//             TX chunk of queue 0's UMEM   ◀──────────── completion ring ◀─────────── done, or dropped
//
//   NIC queue q ─▶ steering program ─▶ rx ring q ─▶ receive: view into the UMEM ─ release ─▶ fill ring q
//
// Files: steer (program, map, link) · probe (what the interface is) · umem, xsk_ring, xsk_socket (memory, rings,
// sockets) · engine/port/udp_reservation (the port number) · afxdp_open (bring-up, numbered) · afxdp_port (the data path).
//
// Everything after open() is for the engine core alone, but for wake(). It allocates and locks nothing. Frames that the
// steering program hands over pass no firewall rule and no packet capture. It does not resolve neighbours or follow
// routes: before update_path() brought a template, lend() gives nothing.
#pragma once

#include <netinet/in.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/message.hpp"
#include "engine/base/result.hpp"
#include "engine/base/telemetry.hpp"
#include "engine/port/port.hpp"
#include "engine/port/udp_reservation.hpp"
#include "engine/wire/l2_l4.hpp"
#include "xdp/probe.hpp"
#include "xdp/rx_chunks.hpp"
#include "xdp/steer.hpp"
#include "xdp/tx_chunks.hpp"
#include "xdp/umem.hpp"
#include "xdp/xsk_socket.hpp"

namespace onehop {

/// XdpMode: what to try. automatic takes zero-copy where it binds, else native copy, else skb (generic XDP).
enum class XdpMode : std::uint8_t { automatic, zero_copy, copy, skb };
[[nodiscard]] std::string_view to_string(XdpMode mode) noexcept;

struct AfXdpConfig {
  std::string interface;
  sockaddr_storage local{};     ///< an address of this host; port 0: any
  sockaddr_storage peer{};      ///< family set: take frames from this address only (its port does not matter)
  XdpMode mode = XdpMode::automatic;
  std::uint32_t chunk_bytes = 0;    ///< 2048 or 4096; 0: by MTU and mode
  std::uint32_t rx_frames = 4096;   ///< chunks and ring entries per receive queue, a power of two
  std::uint32_t tx_frames = 2048;   ///< chunks and ring entries for sending, a power of two
  int sndbuf_bytes = 0;             ///< bounds the copies inside the kernel; 0: enough for all tx_frames
  int priority = 0;                 ///< SO_PRIORITY
};

/// AfXdpCounters: what the port dropped by itself. All only grow.
struct AfXdpCounters {
  std::uint64_t malformed_total = 0;         ///< steered here, yet not one whole UDP datagram
  std::uint64_t oversize_total = 0;          ///< in more chunks than a frame of ours takes
  std::uint64_t tx_refused_total = 0;        ///< thrown away by the queue below us
};

class AfXdpPort {
 public:
  /// open brings everything up; it may block for a few seconds (a predecessor's teardown, a link that bounces).
  /// Errors: 2 address, 9 unsupported or occupied, 10 naming the missing capability.
  [[nodiscard]] static Result<std::unique_ptr<AfXdpPort>> open(const AfXdpConfig& config);
  /// open_on brings up what this port has on another interface, in the same mode, and keeps address and port number. While the engine
  /// core goes on with this one. Errors: as open().
  [[nodiscard]] Result<std::unique_ptr<AfXdpPort>> open_on(const std::string& interface) const;
  /// offer has the engine core go over to what `fresh` has, at the next update_path(). `fresh` outlives this port; nobody else uses it. From
  /// another thread.
  void offer(AfXdpPort& fresh) noexcept { offered_.store(&fresh, std::memory_order_release); }
  AfXdpPort(const AfXdpPort&) = delete;
  AfXdpPort& operator=(const AfXdpPort&) = delete;
  ~AfXdpPort() = default;

  // The Port concept.
  [[nodiscard]] std::span<std::byte> lend(std::size_t frame_bytes) noexcept;
  void commit(std::size_t frame_bytes) noexcept;
  std::size_t flush(Instant now) noexcept;
  [[nodiscard]] std::size_t receive(std::span<RxFrame> views) noexcept;
  void release() noexcept;
  [[nodiscard]] QueueTelemetry tx_queue(Instant now) noexcept;
  [[nodiscard]] QueueTelemetry rx_ring(Instant now) noexcept;
  std::uint32_t wait(Instant deadline, bool is_rx_wanted) noexcept;
  void update_path(const PathUpdate& update) noexcept;
  [[nodiscard]] std::uint64_t syscalls_total() const noexcept { return syscalls_total_; }
  [[nodiscard]] PortInfo info() const noexcept;
  [[nodiscard]] int last_error() const noexcept { return last_error_; }

  /// wake ends a wait() from another thread. Syscalls: write.
  void wake() noexcept;

  [[nodiscard]] std::uint16_t local_port() const noexcept { return reservation_.port(); }
  [[nodiscard]] XdpMode mode_got() const noexcept { return mode_; }
  [[nodiscard]] std::size_t rx_queues() const noexcept { return queues_.size(); }
  [[nodiscard]] const AfXdpCounters& counters() const noexcept { return counters_; }
  /// strays_total counts frames for our port that took the kernel's path. Not for the hot path. Syscalls: getsockopt.
  [[nodiscard]] std::uint32_t strays_total() const noexcept { return reservation_.dropped_total(); }
  /// refusals lists the modes that automatic tried before the one in use: "no zero-copy (Operation not supported)". Empty where it
  /// took the first, or was not asked. `onehop doctor` tells of each mode which attempt failed.
  [[nodiscard]] const std::string& refusals() const noexcept { return refusals_; }

 private:
  // One receive queue. Its UMEM outlives its socket: members are destroyed in reverse order.
  struct RxQueue {
    xdp::Umem umem;
    xdp::XskSocket socket;
    xdp::RxChunks chunks;
  };

  AfXdpPort() = default;

  // Bring-up, afxdp_open.cpp.
  [[nodiscard]] Result<void> bring_up(const AfXdpConfig& config);
  [[nodiscard]] Result<void> bring_up_mode(const AfXdpConfig& config, XdpMode mode);
  [[nodiscard]] Result<void> open_queues(const AfXdpConfig& config, bool is_zero_copy);
  [[nodiscard]] Result<void> open_queue(const AfXdpConfig& config, const xdp::BindTarget& target,
                                        std::uint32_t chunk_bytes);
  [[nodiscard]] Result<void> open_sender(const AfXdpConfig& config, const xdp::BindTarget& target);
  [[nodiscard]] Result<void> finish_set_up(const AfXdpConfig& config);

  /// take_over exchanges what belongs to an interface with `fresh`'s. It allocates nothing.
  void take_over(AfXdpPort& fresh) noexcept;

  // Data path, afxdp_port.cpp.
  [[nodiscard]] int kick_tx() noexcept;
  [[nodiscard]] std::size_t receive_from(RxQueue& queue, std::span<RxFrame> views) noexcept;
  void release_to(RxQueue& queue) noexcept;
  void read_statistics() noexcept;

  // Set at open; take_over() exchanges all but the number, the wake-up descriptor and the configuration.
  AfXdpConfig config_;
  xdp::InterfaceFacts interface_;
  UdpReservation reservation_;
  xdp::Steer steer_;
  std::vector<RxQueue> queues_;
  xdp::XskSocket sender_;  // after queues_: it goes first
  Fd wake_fd_;
  std::vector<pollfd> poll_fds_;  // wake_fd_, then one per queue
  std::string refusals_;
  XdpMode mode_ = XdpMode::automatic;
  QueueScope scope_ = QueueScope::none;
  std::uint32_t wire_overhead_bytes_ = 0;
  std::size_t frame_bytes_max_ = 0;
  Bytes memory_{};

  std::atomic<AfXdpPort*> offered_{nullptr};  // release in offer(), acquire in update_path()

  // Written by the engine core.
  wire::HeaderTemplate template_;
  bool has_path_ = false;
  std::uint32_t wire_frame_bytes_ = 0;           // a full frame at the current MTU, for capacities
  std::uint32_t frame_chunks_ = 1;               // chunks of the largest frame, fixed at open
  xdp::TxChunks chunks_;
  std::uint64_t lent_slot_ = 0;                  // where in the UMEM the lent slot begins
  std::uint32_t unpublished_frames_ = 0;
  Bytes received_total_{};
  std::uint32_t next_queue_ = 0;                 // round robin
  std::uint64_t rx_refused_total_ = 0, rx_refused_before_ = 0;  // of interfaces before this one
  Instant statistics_at_{};
  bool is_holding_ = false;
  int last_error_ = 0;
  std::uint64_t syscalls_total_ = 0;
  AfXdpCounters counters_;
};

static_assert(Port<AfXdpPort>);

}  // namespace onehop
