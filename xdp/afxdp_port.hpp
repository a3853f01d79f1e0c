// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AfXdpPort: AF_XDP as a Port (engine/port/port.hpp), straight on the kernel's interface.
//
//   lend ─▶ [64 B headers | sealed frame] ─ commit ─▶ tx ring ─ flush: one sendto ─▶ kernel )))
//             TX chunk of queue 0  ◀───── completion ring ◀── sent or dropped ──────── driver
//
//   NIC queue q ─▶ steering program ─▶ rx ring q ─▶ receive: view into the chunk
//                                      fill ring q ◀─ release
//
// Everything after open() is for the engine core alone, but for wake() and move_to(). It allocates
// and locks nothing. Frames that the steering program hands over pass no firewall rule and no
// packet capture. The port does not resolve neighbours or follow routes: lend() gives nothing until
// update_path() has brought a header template.
#pragma once

#include <poll.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/message.hpp"
#include "engine/base/result.hpp"
#include "engine/base/system/wake_fd.hpp"
#include "engine/base/telemetry.hpp"
#include "engine/port/port.hpp"
#include "engine/port/udp_reservation.hpp"
#include "engine/wire/l2_l4.hpp"
#include "xdp/rx_chunks.hpp"
#include "xdp/steer.hpp"
#include "xdp/tx_chunks.hpp"
#include "xdp/xsk_queue.hpp"

namespace onehop {

/// XdpMode: what to try. automatic: zero-copy where it binds, else native copy, else skb (generic).
enum class XdpMode : std::uint8_t { automatic, zero_copy, copy, skb };
[[nodiscard]] std::string_view to_string(XdpMode mode) noexcept;

struct AfXdpConfig {
  std::string interface;
  Endpoint local;  ///< an address of this host; port 0: any
  XdpMode mode = XdpMode::automatic;
  // Chunks and ring entries, powers of two.
  std::uint32_t rx_frames = 4096;  ///< per receive queue, at least rx_batch_max
  std::uint32_t tx_frames = 2048;  ///< at least 32
  int sndbuf_bytes = 0;     ///< bounds the copies inside the kernel; 0: enough for all tx_frames
  int priority = 0;         ///< SO_PRIORITY
  bool has_generic = true;  ///< XdpMode::automatic ends with skb; else with copy
  /// On one queue alone, the last, so that the others go on: to try a mode, not to receive.
  bool is_on_spare_queue = false;
};

class AfXdpPort {
 public:
  /// open brings everything up. It may block for a few seconds (a predecessor's teardown, a link
  /// that bounces). Errors: 2 address, 9 unsupported or occupied, 10 naming the missing capability.
  [[nodiscard]] static Result<std::unique_ptr<AfXdpPort>> open(const AfXdpConfig& config);
  /// move_to opens the same on another interface: mode, address and port number stay. The engine
  /// core goes on as it is, and goes over with the next update_path(). What it has left then is
  /// closed by the next move_to(), whose interface may be that one. From one other thread. Errors:
  /// as open().
  [[nodiscard]] Result<void> move_to(const std::string& interface);

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

  // --- Following a peer to another port (port.hpp). Not to another address: what its link address
  // is only the kernel finds out.
  [[nodiscard]] std::optional<Endpoint> source_elsewhere(const RxFrame& view) const noexcept;
  bool send_to(const Endpoint& to, std::span<const std::byte> frame) noexcept;
  bool move_peer(const Endpoint& peer) noexcept;

  /// share_port lets a socket of the same port number be bound beside this port, until that ends.
  void share_port() const noexcept { reservation_.share_port(); }

  /// wake ends a wait() from another thread. Syscalls: write.
  void wake() noexcept { wake_.wake(); }

  [[nodiscard]] std::uint16_t local_port() const noexcept { return reservation_.port(); }
  [[nodiscard]] XdpMode mode_got() const noexcept { return config_.mode; }
  [[nodiscard]] std::size_t rx_queues() const noexcept { return device_->queues.size(); }
  /// malformed_total: steered here, yet not one whole UDP datagram, or larger than a frame of ours.
  [[nodiscard]] std::uint64_t malformed_total() const noexcept { return malformed_total_; }
  /// refusals lists the modes that automatic tried before the one in use: "no zero-copy (Operation
  /// not supported)". Empty where it took the first, or was not asked.
  [[nodiscard]] const std::string& refusals() const noexcept { return refusals_; }

 private:
  struct RxQueue {
    xdp::XskQueue xsk;
    xdp::RxChunks chunks;
  };
  // Device: all that belongs to one interface. The first queue also sends.
  struct Device {
    [[nodiscard]] xdp::XskQueue& sender() noexcept { return queues.front().xsk; }

    QueueScope scope = QueueScope::none;
    SteerFds steer;
    std::vector<RxQueue> queues;
    std::uint32_t queue_first = 0;  // number of the first of `queues`
    xdp::TxChunks tx;
    std::vector<pollfd> poll_fds;  // wake_, then one per queue
    std::size_t frame_bytes_max = 0;
    std::uint32_t wire_frame_bytes = 0;  // a full frame at the current MTU, for capacities
    std::uint32_t frame_chunks = 1;      // chunks of the largest frame, fixed at open
    Bytes memory{};
  };

  explicit AfXdpPort(const AfXdpConfig& config) : config_{config} {}

  // Bring-up, afxdp_open.cpp. open_device tries the mode asked for, or the first that works.
  [[nodiscard]] Result<void> open_device(const InterfaceFacts& facts,
                                         std::unique_ptr<Device>& device);
  [[nodiscard]] Result<void> open_mode(const InterfaceFacts& facts, XdpMode mode,
                                       std::unique_ptr<Device>& device);
  [[nodiscard]] Result<void> open_queues(const InterfaceFacts& facts, XdpMode mode,
                                         std::uint32_t chunk_bytes, Device& device) const;
  [[nodiscard]] Result<void> prepare_sending(const std::string& interface, Device& device) const;
  [[nodiscard]] Result<void> finish_set_up(const InterfaceFacts& facts, Device& device) const;

  // Data path, afxdp_port.cpp.
  void take_offered() noexcept;
  void take_over(std::unique_ptr<Device>& fresh) noexcept;
  [[nodiscard]] Endpoint peer() const noexcept;
  void set_template(std::uint16_t peer_port) noexcept;
  [[nodiscard]] xdp::XskQueue& sender() noexcept { return device_->sender(); }
  void release_to(RxQueue& queue) noexcept;
  void read_statistics() noexcept;

  AfXdpConfig config_;  // mode: from bring-up on the one in use
  UdpReservation reservation_;
  WakeFd wake_;
  std::string refusals_;
  std::uint32_t wire_overhead_bytes_ = 0;

  // Written by the thread that calls move_to().
  std::unique_ptr<Device> other_;  // what is offered, then what was left
  // Both sequentially consistent: move_to() takes the offer back and then looks whether it was too
  // late; take_offered() says that it takes and then looks for an offer.
  std::atomic<std::unique_ptr<Device>*> offered_{nullptr};
  std::atomic<bool> is_taking_{false};

  // Written by the engine core.
  std::unique_ptr<Device> device_;
  wire::HeaderTemplate template_;
  PathUpdate path_;               // the newest, with the peer's port as it was found
  std::uint16_t moved_port_ = 0;  // 0: the peer is where the session said
  bool has_path_ = false;
  std::uint64_t lent_slot_ = 0;  // where in the chunk memory the lent slot begins
  Bytes received_total_{};
  std::uint32_t next_queue_ = 0;                                // round robin
  std::uint64_t rx_refused_total_ = 0, rx_refused_before_ = 0;  // of interfaces before this one
  Instant statistics_at_{};
  bool is_holding_ = false;
  int last_error_ = 0;
  std::uint64_t syscalls_total_ = 0;
  std::uint64_t malformed_total_ = 0;
  std::uint64_t tx_refused_total_ = 0;  // thrown away by the queue below us
};

static_assert(Port<AfXdpPort>);

}  // namespace onehop
