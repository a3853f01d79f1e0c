// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/service/notifier.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

namespace onehop::tool {

Notifier::Notifier() {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path == nullptr || std::strlen(path) < 2 || std::strlen(path) >= sizeof address.sun_path)
    return;
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path);
  if (*path == '@') address.sun_path[0] = '\0';  // an abstract one
  Fd socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  if (!socket.is_open() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return;
  socket_ = std::move(socket);
  const char* const limit = std::getenv("WATCHDOG_USEC");
  const char* const whose = std::getenv("WATCHDOG_PID");
  if (limit == nullptr || (whose != nullptr && std::to_string(::getpid()) != whose)) return;
  constexpr double half_seconds_per_us = 0.5e-6;  // systemd's manual has half of the limit
  beat_seconds_ = static_cast<double>(std::strtoull(limit, nullptr, 10)) * half_seconds_per_us;
}

void Notifier::tell(std::string_view news) const noexcept {
  if (socket_.is_open())
    static_cast<void>(::send(socket_.get(), news.data(), news.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

}  // namespace onehop::tool
