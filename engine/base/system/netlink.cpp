// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/system/netlink.hpp"

#include <libmnl/libmnl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "engine/base/system/netlink_message.hpp"

namespace onehop {

namespace {
// libmnl's recommendation (MNL_SOCKET_BUFFER_SIZE) for a dump's datagram is at most this.
constexpr std::size_t buffer_bytes = 32 * 1024;

std::span<const std::byte> bytes_in(std::span<const char> buffer, ssize_t received) {
  return std::as_bytes(buffer.first(static_cast<std::size_t>(received)));
}

int on_each(const nlmsghdr* message, void* callback) {
  (*static_cast<const std::function<void(const nlmsghdr*)>*>(callback))(message);
  return MNL_CB_OK;
}
}  // namespace

void NetlinkSocket::Closer::operator()(mnl_socket* socket) const noexcept {
  mnl_socket_close(socket);
}

Result<NetlinkSocket> NetlinkSocket::open(int family, std::span<const unsigned> groups) {
  NetlinkSocket self;
  self.socket_.reset(mnl_socket_open2(family, SOCK_CLOEXEC));
  if (!self.socket_) return errno_error(ExitCode::io_unavailable, "open a netlink socket");
  if (mnl_socket_bind(self.socket_.get(), 0, MNL_SOCKET_AUTOPID) != 0)
    return errno_error(ExitCode::internal_error, "bind a netlink socket");
  for (unsigned group : groups) {
    int value = static_cast<int>(group);
    if (mnl_socket_setsockopt(self.socket_.get(), NETLINK_ADD_MEMBERSHIP, &value, sizeof value) !=
        0)
      return errno_error(ExitCode::internal_error,
                         "subscribe to netlink group " + std::to_string(group));
  }
  return self;
}

Result<void> NetlinkSocket::request(nlmsghdr* message,
                                    const std::function<void(const nlmsghdr*)>& on_message,
                                    const char* attempt) {
  message->nlmsg_seq = ++sequence_;
  if (mnl_socket_sendto(socket_.get(), message, message->nlmsg_len) < 0)
    return errno_error(ExitCode::internal_error, attempt);
  const unsigned port = mnl_socket_get_portid(socket_.get());
  alignas(NLMSG_ALIGNTO) std::array<char, buffer_bytes> buffer;
  for (;;) {
    const ssize_t received = mnl_socket_recvfrom(socket_.get(), buffer.data(), buffer.size());
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) return errno_error(ExitCode::internal_error, attempt);
    const std::size_t whole =
        each_message(bytes_in(buffer, received), [](std::span<const std::byte>) {});
    const int rc = mnl_cb_run(buffer.data(), whole, sequence_, port, on_each,
                              const_cast<void*>(static_cast<const void*>(&on_message)));
    if (rc < 0) {
      auto error = errno_error(ExitCode::internal_error, attempt);
      // A dump that the kernel broke (NLM_F_DUMP_INTR) goes on. The next request must not read it,
      // and the kernel takes no second dump before the end of the first.
      (void)receive_pending([](const nlmsghdr*) {});
      return error;
    }
    if (rc == 0) return success();
    const bool is_single = (message->nlmsg_flags & (NLM_F_DUMP | NLM_F_ACK)) == 0;
    if (is_single) return success();
  }
}

bool NetlinkSocket::receive_pending(const std::function<void(const nlmsghdr*)>& on_message) {
  alignas(NLMSG_ALIGNTO) std::array<char, buffer_bytes> buffer;
  bool is_whole = true;
  for (;;) {
    const ssize_t received = ::recv(fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (received < 0 && errno == ENOBUFS) {
      is_whole = false;
      continue;
    }
    if (received <= 0) return is_whole;
    each_message(bytes_in(buffer, received), [&](std::span<const std::byte> message) {
      on_message(reinterpret_cast<const nlmsghdr*>(message.data()));
    });
  }
}

int NetlinkSocket::fd() const noexcept { return mnl_socket_get_fd(socket_.get()); }

}  // namespace onehop
