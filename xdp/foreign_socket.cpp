// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "xdp/foreign_socket.hpp"

#include <sys/socket.h>

#include <charconv>
#include <filesystem>

#include "xdp/afxdp_layout.hpp"
#include "xdp/xsk_socket.hpp"

namespace onehop::xdp {

namespace {
bool is_xdp_socket(int fd) {
  int domain = 0;
  socklen_t length = sizeof domain;
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_XDP;
}
}  // namespace

void widen_sockets(std::uint32_t tx_frames, std::uint32_t frame_bytes, int priority) {
  std::error_code ignored;  // without /proc nothing is found, and nothing is lost but speed
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd", ignored}) {
    const std::string name = entry.path().filename();
    int fd = -1;
    (void)std::from_chars(name.data(), name.data() + name.size(), fd);
    if (is_xdp_socket(fd)) set_tx_limits(fd, tx_frames, static_cast<int>(tx_frames) * copy_truesize_bytes(frame_bytes), priority);
  }
}

}  // namespace onehop::xdp
