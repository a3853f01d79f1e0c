// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// UdpSocket: one UDP socket, set up for the data path, and the kernel's account of it.
//
// It owns the descriptor. open() and connect() are called before the engine core runs; the rest by
// the engine core. It moves no data: udp_tx and udp_rx do.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/base/system/address.hpp"
#include "engine/base/telemetry.hpp"
#include "engine/port/link_status.hpp"
#include "engine/port/mem_info.hpp"
#include "engine/wire/l2_l4.hpp"

namespace onehop {

struct UdpPortConfig {
  Endpoint local;                ///< port 0: any
  std::optional<Endpoint> peer;  ///< connect() at once where known
  std::string interface;         ///< SO_BINDTODEVICE where not empty
  /// Receive buffer asked for. 4 MiB is what Debian's rmem_max grants unprivileged; the kernel
  /// doubles it. Too low: naps of the receiver drop frames. Too high: memory, and drops seen late.
  int rcvbuf_bytes = 4 << 20;
  /// Send buffer asked for: about 5 ms at 10 Gbit/s in truesize. Too low: the link runs dry while
  /// the core naps. Too high: memory only, since the backlog limit of the grant is reached first.
  int sndbuf_bytes = 8 << 20;
  int priority = 0;                    ///< SO_PRIORITY; 0..6 need no privilege
  std::uint8_t dscp = 0;               ///< of each frame; 8 (CS1) is lower effort, RFC 3662
  std::size_t frame_bytes_max = 8972;  ///< largest UDP payload: a 9000-byte MTU less 28
  wire::Ecn ecn = wire::Ecn::ect0;     ///< tests send CE
  /// Frames above the MTU leave as IP fragments, until they end (run/frame_size.hpp). One fragment
  /// lost is the frame lost, and its others stand in the peer's reassembly memory for 30 s (4 MiB
  /// for all flows of a namespace, ipfrag_high_thresh).
  bool has_fragments = false;
  /// The kernel drops what cannot be a frame of ours (engine/wire/frame.hpp).
  bool has_frames_only = false;
  /// A second socket takes what comes from elsewhere than the peer (udp_elsewhere.hpp).
  bool follows_peer = false;
  bool is_port_shared = false;  ///< with a socket of ours that is bound there
  bool is_gso_allowed = true;
  /// What the socket's charge can see. own_ring where something between us and the shaping queue
  /// takes the charge off (a veth pair into a bridge). Loopback is found out without it.
  QueueScope scope = QueueScope::lower_queue;
};

class UdpSocket {
 public:
  /// open makes and binds the socket. Syscalls: socket, setsockopt, bind, connect.
  [[nodiscard]] static Result<UdpSocket> open(const UdpPortConfig& config);
  /// connect fixes the peer. It spares the kernel a route look-up per received frame, and
  /// strangers' frames are dropped below us. Syscalls: connect, getsockname.
  [[nodiscard]] Result<void> connect(const Endpoint& peer);

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] bool is_ipv6() const noexcept { return is_ipv6_; }
  [[nodiscard]] bool is_loopback() const noexcept { return is_loopback_; }
  [[nodiscard]] Result<std::uint16_t> local_port() const;  ///< Syscalls: getsockname.
  /// is_gso_known probes for UDP_SEGMENT (kernel 4.18). Syscalls: setsockopt.
  [[nodiscard]] bool is_gso_known() const noexcept;
  /// set_gro turns UDP_GRO on or off; false: a kernel before 5.0. Syscalls: setsockopt.
  [[nodiscard]] bool set_gro(bool is_on) const noexcept;
  /// set_fragments: the kernel fragments frames above the MTU, or refuses. Syscalls: setsockopt.
  [[nodiscard]] bool set_fragments(bool is_on) const noexcept;
  [[nodiscard]] MemInfo mem_info() const noexcept { return read_mem_info(fd()); }
  /// drain_errors empties the error queue: it counts reports of the link and drops ICMP errors,
  /// which are not authenticated and so decide nothing. Bounded per call. Returns the system calls
  /// made. Syscalls: recvmsg, getsockopt.
  std::uint32_t drain_errors() const noexcept;
  /// follow_device binds to `interface` again, which was made anew under another number. It ends
  /// the connection first, which takes off the old binding, so that no privilege is needed; then it
  /// connects to `peer`, if there is one. False: it cannot yet. Syscalls: getsockname, connect,
  /// bind, setsockopt.
  bool follow_device(const std::string& interface, const std::optional<Endpoint>& peer) noexcept;
  /// move_peer connects to another peer; false: the kernel has no way there. Syscalls: connect.
  bool move_peer(const Endpoint& peer) noexcept;
  /// follow_link names the interface that is_link_running() asks about; 0: none. Syscalls: ioctl.
  void follow_link(int ifindex) noexcept;
  [[nodiscard]] bool follows_link() const noexcept { return link_name_.front() != '\0'; }
  /// is_link_running: it has a carrier (IFF_RUNNING); true if unknown. Syscalls: ioctl.
  [[nodiscard]] bool is_link_running() const noexcept;
  /// link_status is the account of what the link acknowledged, as far as it is asked for.
  [[nodiscard]] LinkStatus& link_status() const noexcept { return link_status_; }

 private:
  Fd fd_;
  Endpoint local_;  // port 0: not asked yet
  bool is_ipv6_ = false;
  bool is_loopback_ = false;
  std::array<char, 16> link_name_{};  // IFNAMSIZ
  // Mutable: it is the kernel's account, which drain_errors() only reads.
  mutable LinkStatus link_status_;
};

}  // namespace onehop
