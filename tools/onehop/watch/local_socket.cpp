// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/watch/local_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace onehop::watch {

namespace {

constexpr int backlog = 8;

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() > socket_path_bytes_max)
    return Error{ExitCode::local_file_error, "use the socket " + path,
                 "its path is longer than 107 bytes", "Set XDG_RUNTIME_DIR to a shorter one"};
  std::ranges::copy(path, address.sun_path);
  return address;
}

Result<Fd> make_socket() {
  Fd fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!fd.is_open()) return errno_error(ExitCode::internal_error, "make a Unix socket");
  return fd;
}

}  // namespace

Result<Fd> connect_local(const std::string& path) {
  ONEHOP_TRY(address, address_of(path));
  ONEHOP_TRY(fd, make_socket());
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno_error(ExitCode::peer_unreachable, "connect to " + path,
                       "The transfer may have ended");
  return Fd{std::move(fd)};
}

Result<Fd> listen_local(const std::string& path, const std::string& path_new) {
  ONEHOP_TRY(address, address_of(path_new));
  ONEHOP_TRY(fd, make_socket());
  ::unlink(path_new.c_str());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno_error(ExitCode::local_file_error, "make the socket " + path_new);
  // The folder keeps others out already; the mode says so as well.
  const bool is_made = ::chmod(path_new.c_str(), S_IRUSR | S_IWUSR) == 0 &&
                       ::listen(fd.get(), backlog) == 0 &&
                       ::rename(path_new.c_str(), path.c_str()) == 0;
  if (!is_made) {
    const Error error = errno_error(ExitCode::local_file_error, "listen on " + path);
    ::unlink(path_new.c_str());
    return error;
  }
  return Fd{std::move(fd)};
}

bool is_allowed(int fd) noexcept {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

}  // namespace onehop::watch
