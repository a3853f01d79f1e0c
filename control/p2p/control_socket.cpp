// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/p2p/control_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace onehop::p2p {

namespace {

/// wpa_supplicant answers within milliseconds, or not at all.
constexpr int answer_limit_ms = 10'000;

}  // namespace

std::string control_folder(const std::string& setting) {
  if (!setting.starts_with("DIR=")) return setting;
  return setting.substr(4, setting.find(' ') - 4);
}

Result<ControlSocket> ControlSocket::open(const std::string& setting,
                                          const std::string& interface) {
  const std::string path = control_folder(setting) + "/" + interface;
  const std::string attempt = "open wpa_supplicant's control socket " + path;
  sockaddr_un there{}, here{};
  there.sun_family = here.sun_family = AF_UNIX;
  if (setting.empty() || path.size() >= sizeof there.sun_path)
    return Error{ExitCode::io_unavailable, "open wpa_supplicant's control socket", "it has none",
                 "Start it with -O 'DIR=/run/wpa_supplicant GROUP=netdev'", ENOENT};
  std::memcpy(there.sun_path, path.data(), path.size());
  Fd fd{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  // An address of the kernel's choice, without a file: that is where the answer comes to.
  if (!fd.is_open() ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here.sun_family) != 0 ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0)
    return errno_error(errno == EACCES ? ExitCode::privilege_missing : ExitCode::io_unavailable,
                       attempt,
                       "Start wpa_supplicant with -O 'DIR=/run/wpa_supplicant GROUP=netdev'");
  return ControlSocket{std::move(fd)};
}

Result<std::string> ControlSocket::ask(const std::string& command, const std::string& attempt) {
  if (::send(fd_.get(), command.data(), command.size(), MSG_NOSIGNAL) < 0)
    return errno_error(ExitCode::io_unavailable, attempt);
  std::array<char, 4096> answer;
  for (;;) {
    pollfd fd{fd_.get(), POLLIN, 0};
    const int ready = ::poll(&fd, 1, answer_limit_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0)
      return Error{ExitCode::timed_out, attempt, "wpa_supplicant does not answer", "", ETIMEDOUT};
    break;
  }
  const ssize_t got = ::recv(fd_.get(), answer.data(), answer.size(), 0);
  if (got < 0) return errno_error(ExitCode::io_unavailable, attempt);
  std::string text(answer.data(), static_cast<std::size_t>(got));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace onehop::p2p
