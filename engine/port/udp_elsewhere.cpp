// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/port/udp_elsewhere.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace onehop {

namespace {

// A few frames of full size: more than the peer sends in the pauses between two looks of a proof.
constexpr int buffer_bytes = 256 * 1024;

}  // namespace

Result<void> share_port(const UdpSocket& socket, bool is_shared) {
  const int value = is_shared ? 1 : 0;
  if (::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &value, sizeof value) == 0)
    return success();
  return errno_error(ExitCode::io_unavailable, "share the data port with a second socket");
}

Result<UdpElsewhere> UdpElsewhere::open(const UdpSocket& main, const UdpPortConfig& config) {
  UdpPortConfig second = config;
  ONEHOP_TRY(local, Endpoint::of_socket(main.fd()));
  second.local = local;
  second.rcvbuf_bytes = second.sndbuf_bytes = buffer_bytes;
  second.is_port_shared = true;
  ONEHOP_TRYV(share_port(main, true));
  ONEHOP_TRY(socket, UdpSocket::open(second));
  // From here on a third one finds the port taken.
  ONEHOP_TRYV(share_port(main, false));
  ONEHOP_TRYV(share_port(socket, false));
  return UdpElsewhere{std::move(socket), config.frame_bytes_max};
}

std::optional<RxFrame> UdpElsewhere::receive(Endpoint& source) noexcept {
  SocketAddress from{.storage = {}, .size_bytes = sizeof from.storage};
  auto* into = reinterpret_cast<sockaddr*>(&from.storage);
  syscalls_total_ += 1;
  const ssize_t got = ::recvfrom(socket_.fd(), buffer_.get(), bytes_max_, MSG_DONTWAIT | MSG_TRUNC,
                                 into, &from.size_bytes);
  if (got < 0 && errno != EAGAIN) syscalls_total_ += socket_.drain_errors();
  const auto bytes = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  if (bytes == 0 || bytes > bytes_max_) return std::nullopt;
  const auto sender = Endpoint::from_sockaddr(into, from.size_bytes);
  if (!sender) return std::nullopt;
  source = *sender;
  return RxFrame{.data = buffer_.get(), .length = static_cast<std::uint32_t>(bytes)};
}

bool UdpElsewhere::send(const Endpoint& to, std::span<const std::byte> frame) const noexcept {
  const SocketAddress at = to.to_sockaddr();
  syscalls_total_ += 1;
  return ::sendto(socket_.fd(), frame.data(), frame.size(), MSG_DONTWAIT, at.get(),
                  at.size_bytes) >= 0;
}

}  // namespace onehop
