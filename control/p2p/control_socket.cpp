// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/control_socket.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace onehop::p2p {

Result<Fd> open_control(const std::string& setting, const std::string& interface, Nanos limit) {
  const std::string folder =
      setting.starts_with("DIR=") ? setting.substr(4, setting.find(' ') - 4) : setting;
  const std::string path = folder + "/" + interface;
  const std::string attempt = "open wpa_supplicant's control socket " + path;
  sockaddr_un there{}, here{};
  there.sun_family = here.sun_family = AF_UNIX;
  if (setting.empty() || path.size() >= sizeof there.sun_path)
    return Error{ExitCode::io_unavailable, "open wpa_supplicant's control socket", "it has none",
                 "Start it with -O 'DIR=/run/wpa_supplicant GROUP=netdev'", ENOENT};
  std::memcpy(there.sun_path, path.data(), path.size());
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(limit).count();
  const timeval wait{.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
  Fd fd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  // An address of the kernel's choice, without a file: that is where the answer comes to.
  if (!fd.is_open() || ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) != 0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here.sun_family) != 0 ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0)
    return errno_error(errno == EACCES ? ExitCode::privilege_missing : ExitCode::io_unavailable,
                       attempt,
                       "Start wpa_supplicant with -O 'DIR=/run/wpa_supplicant GROUP=netdev'");
  return fd;
}

Result<std::string> ask_control(const Fd& fd, const std::string& command,
                                const std::string& attempt) {
  std::array<char, 4096> answer;
  // An answer that came too late belongs to the command before.
  while (::recv(fd.get(), answer.data(), answer.size(), MSG_DONTWAIT) >= 0) {
  }
  if (::send(fd.get(), command.data(), command.size(), MSG_NOSIGNAL) < 0)
    return errno_error(ExitCode::io_unavailable, attempt);
  ssize_t got = 0;
  while ((got = ::recv(fd.get(), answer.data(), answer.size(), 0)) < 0 && errno == EINTR) {
  }
  if (got < 0 && errno == EAGAIN)
    return Error{ExitCode::timed_out, attempt, "wpa_supplicant does not answer", "", ETIMEDOUT};
  if (got < 0) return errno_error(ExitCode::io_unavailable, attempt);
  std::string text(answer.data(), static_cast<std::size_t>(got));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace onehop::p2p
