// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// UdpPort: the Port of every machine. One UDP socket, no privilege.
//
//   lend, commit ─▶ UdpTx (arena, UDP_SEGMENT) ─▶ socket ─▶ qdisc, driver )))
//                                                   │ SO_MEMINFO ─▶ OutstandingLedger ─▶ tx_queue()
//   receive ◀────── UdpRx (recvmmsg, UDP_GRO) ◀── socket ─ SO_MEMINFO ─▶ rx_ring()
//
// open() and connect() run before the engine core starts; wake() from any thread; the rest on the
// engine core. It speaks no netlink, sleeps in wait() only, and lets no ICMP error end a session.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "engine/base/system/wake_fd.hpp"
#include "engine/port/port.hpp"
#include "engine/port/udp_elsewhere.hpp"
#include "engine/port/udp_rx.hpp"
#include "engine/port/udp_socket.hpp"
#include "engine/port/udp_tx.hpp"

namespace onehop {

class UdpPort {
 public:
  /// open binds the socket, probes for UDP_SEGMENT and UDP_GRO and allocates all buffers.
  /// Syscalls: socket, setsockopt, bind, connect, eventfd2.
  [[nodiscard]] static Result<std::unique_ptr<UdpPort>> open(const UdpPortConfig& config);
  /// connect fixes the peer; it is called before the first flush.
  [[nodiscard]] Result<void> connect(const Endpoint& peer);
  [[nodiscard]] Result<std::uint16_t> local_port() const { return socket_.local_port(); }

  [[nodiscard]] std::span<std::byte> lend(std::size_t n) noexcept { return tx_.lend(n); }
  void commit(std::size_t n) noexcept { tx_.commit(n); }
  [[nodiscard]] std::size_t flush(Instant now) noexcept { return tx_.flush(socket_, now); }
  [[nodiscard]] std::size_t receive(std::span<RxFrame> views) noexcept {
    return rx_.receive(socket_, views);
  }
  void release() noexcept { rx_.release(); }
  [[nodiscard]] QueueTelemetry tx_queue(Instant now) noexcept;
  [[nodiscard]] QueueTelemetry rx_ring(Instant now) noexcept;
  /// While frames wait for room in the socket, it also returns for room. Syscalls: ppoll, read.
  std::uint32_t wait(Instant deadline, bool is_rx_wanted) noexcept;
  void update_path(const PathUpdate& update) noexcept;
  [[nodiscard]] std::uint64_t syscalls_total() const noexcept;
  [[nodiscard]] PortInfo info() const noexcept;
  [[nodiscard]] int last_error() const noexcept { return tx_.last_error(); }

  /// wake ends a wait() from another thread, or the next one. Syscalls: write.
  void wake() noexcept { wake_.wake(); }
  /// ask_link_status asks Wi-Fi drivers for acknowledgements of single frames (link_status.hpp);
  /// for a sender, before the engine core runs. Syscalls: setsockopt.
  void ask_link_status() noexcept { (void)socket_.link_status().ask(socket_.fd()); }
  /// claim_port ends UdpPortConfig::is_port_shared: from here on no other socket can bind to the
  /// port. Syscalls: setsockopt.
  [[nodiscard]] Result<void> claim_port() { return share_port(socket_, false); }

  // --- Following a peer to another address (port.hpp), where the configuration asks for it.
  [[nodiscard]] std::optional<RxFrame> receive_elsewhere(Endpoint& source) noexcept;
  bool send_to(const Endpoint& to, std::span<const std::byte> frame) noexcept;
  /// move_peer: Syscalls: connect.
  bool move_peer(const Endpoint& peer) noexcept;

  /// large_frame_bytes: a datagram that leaves in fragments holds so much; 0 without has_fragments,
  /// or once they have ended.
  [[nodiscard]] std::size_t large_frame_bytes() const noexcept {
    return has_fragments_ ? config_.frame_bytes_max : 0;
  }
  /// end_large_frames ends them for good: frames above the MTU are refused from now on, batches
  /// segmented. Syscalls: setsockopt.
  void end_large_frames() noexcept;
  /// link_status counts what the link acknowledged, where it was asked for and the driver answers.
  [[nodiscard]] const LinkStatus& link_status() const noexcept { return socket_.link_status(); }
  [[nodiscard]] bool is_gro_on() const noexcept { return rx_.is_gro_on(); }
  [[nodiscard]] std::uint64_t malformed_total() const noexcept { return rx_.malformed_total(); }

 private:
  UdpPort(const UdpPortConfig& config, UdpSocket socket, WakeFd wake, bool is_gso_on,
          bool is_gro_on);
  [[nodiscard]] QueueScope scope() const noexcept;
  void learn_truesize() noexcept;

  UdpPortConfig config_;
  UdpSocket socket_;
  std::optional<UdpElsewhere> elsewhere_;
  bool has_fragments_;
  WakeFd wake_;
  int bound_ifindex_ = 0;  // of config_.interface, as first heard of
  Bytes wire_overhead_;
  UdpTx tx_;
  UdpRx rx_;
  Bytes memory_{};
  Bytes sndbuf_{};  // truesize
  Bytes tx_drained_{};
  std::uint32_t drops_seen_ = 0;
  std::uint64_t drops_total_ = 0;
  // Receive truesize per wire byte: what rmem was at the last reading, and what came out since.
  std::int64_t rx_truesize_permille_ = 1522;  // 2304 / 1514, measured on veth
  std::int64_t rmem_read_bytes_ = 0;
  Bytes received_at_reading_{};
  std::uint64_t own_syscalls_total_ = 0;
  Instant reports_read_at_{};
};

static_assert(Port<UdpPort>);

}  // namespace onehop
