// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Notifier: what systemd is told of a service (sd_notify(3)). Its protocol is one datagram for each
// news, so a build without Wi-Fi Direct needs no libsystemd for it.
#pragma once

#include <string_view>

#include "engine/base/fd.hpp"

namespace onehop::tool {

class Notifier {
 public:
  /// Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID; where they are not set it tells nobody.
  /// Before the process is confined. Syscalls: socket, connect.
  Notifier();
  /// tell sends "READY=1" and the like. Syscalls: send.
  void tell(std::string_view news) const noexcept;
  /// beat_seconds is how often "WATCHDOG=1" is told; 0: never.
  [[nodiscard]] double beat_seconds() const noexcept { return beat_seconds_; }

 private:
  Fd socket_;
  double beat_seconds_ = 0;
};

}  // namespace onehop::tool
