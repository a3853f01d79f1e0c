// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Announcer: a process of its own ("onehop-avahi") that has avahi-daemon publish this receiver, so
// that the one that parses a peer's bytes is on no bus (confine/helper_process.hpp). avahi-daemon
// withdraws it when that process ends, which it does with us, however that is.
#pragma once

#include <string>

#include "control/find/responder.hpp"
#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::tool {

class Announcer {
 public:
  /// start: as the user that we are by now, and before there are threads. It starts nothing where
  /// there is no system bus, and for an address that is on no link. Error: 1.
  [[nodiscard]] static Result<Announcer> start(const find::Responder::Options& found,
                                               const find::Instance& instance);
  /// announce that a receiver listens on this port. Syscalls: send.
  void announce(std::uint16_t port) const;

 private:
  Announcer(Fd socket, std::string message)
      : socket_{std::move(socket)}, message_{std::move(message)} {}
  Fd socket_;
  std::string message_;  // but for the port
};

}  // namespace onehop::tool
