// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// UdpElsewhere: frames to our port that do not come from the peer's. The port's own socket is
// connected, which is cheapest, so the kernel gives it the peer's frames alone. This one is bound
// beside it to the same port and gets the rest, to find a peer behind NAT.
//
//   from the peer ───────▶ connected socket ─▶ UdpRx
//   from anywhere else ──▶ this one ─────────▶ receive(), when the peer is missed
//
// Owned and called by the engine core. It allocates at start only, and never blocks.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "engine/port/port.hpp"
#include "engine/port/udp_socket.hpp"

namespace onehop {

/// share_port: whether a second socket that does the same may bind to a socket's port. While both
/// are bound, and after both have ended that, a third one finds it taken. Syscalls: setsockopt.
[[nodiscard]] Result<void> share_port(const UdpSocket& socket, bool is_shared);

class UdpElsewhere {
 public:
  /// open binds to the port of `main`, which was just opened by `config`. Only for that moment the
  /// two share it. Syscalls: socket, setsockopt, bind, getsockname.
  [[nodiscard]] static Result<UdpElsewhere> open(const UdpSocket& main,
                                                 const UdpPortConfig& config);

  /// receive returns one frame, valid until the next call, and its source. Syscalls: recvfrom.
  [[nodiscard]] std::optional<RxFrame> receive(Endpoint& source) noexcept;
  /// send: false where the kernel does not take it. Syscalls: sendto.
  bool send(const Endpoint& to, std::span<const std::byte> frame) const noexcept;
  [[nodiscard]] std::uint64_t syscalls_total() const noexcept { return syscalls_total_; }
  [[nodiscard]] UdpSocket& socket() noexcept { return socket_; }

 private:
  explicit UdpElsewhere(UdpSocket socket, std::size_t frame_bytes_max)
      : socket_{std::move(socket)},
        bytes_max_{frame_bytes_max},
        buffer_{std::make_unique<std::byte[]>(frame_bytes_max)} {}

  UdpSocket socket_;
  std::size_t bytes_max_;
  std::unique_ptr<std::byte[]> buffer_;
  mutable std::uint64_t syscalls_total_ = 0;
};

}  // namespace onehop
