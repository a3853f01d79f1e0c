// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Rights: the work for which a port needs a privilege. A process that drops its own privileges asks
// another one (tools/onehop/confine/rights_process.hpp); elsewhere a port does it itself.
//
// Set-up code, one thread at a time.
#pragma once

#include <cstdint>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop {

/// SteerRequest: to steer frames of an interface that are for the address of `udp_socket`. The
/// socket proves that the address belongs to the requester.
struct SteerRequest {
  int ifindex = 0;
  int udp_socket = -1;
  bool is_generic = false;
  bool has_fragments = false;
};

/// SteerFds hold the steering program on the interface, and take its sockets.
struct SteerFds {
  Fd map, link;
};

class Rights {
 public:
  Rights() = default;
  Rights(const Rights&) = delete;
  Rights& operator=(const Rights&) = delete;
  virtual ~Rights() = default;

  [[nodiscard]] virtual Result<Fd> open_xdp_socket() = 0;
  [[nodiscard]] virtual Result<SteerFds> attach_program(const SteerRequest& request) = 0;
  /// set_socket directs receive queue `queue` to an AF_XDP socket.
  [[nodiscard]] virtual Result<void> set_socket(int map, std::uint32_t queue, int xsk) = 0;
  /// force_buffer: SO_RCVBUFFORCE or SO_SNDBUFFORCE. False: refused.
  [[nodiscard]] virtual bool force_buffer(int socket, int option, int bytes) noexcept = 0;
};

/// kept_rights is the holder of this process's rights: null, or the one that its program set before
/// there were threads. There is one for all ports, since privileges belong to the process.
[[nodiscard]] inline Rights*& kept_rights() noexcept {
  static Rights* kept = nullptr;
  return kept;
}

}  // namespace onehop
