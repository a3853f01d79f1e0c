// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// RightsProcess: a process of its own ("onehop-rights") that keeps what a port needs a privilege
// for, so that the one that parses a peer's bytes has none.
//
//   onehop ── AF_XDP socket? program on eth0 for this UDP socket? larger buffer? ──▶ onehop-rights
//          ◀── descriptors, or an Error ──                       caps: net_raw net_admin bpf
//
// It is made before there are threads and before a code is read, so that it holds no secret. It
// reads messages of one form and size, receives nothing from a peer, and ends when the other end
// does, however that ends. An attacker that controls the program could ask it for AF_XDP sockets,
// which send any frame, and for the frames of UDP addresses that it holds itself.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>

#include "engine/base/system/rights.hpp"

namespace onehop::confine {

class RightsProcess final : public Rights {
 public:
  /// start: null where this process has no privilege that could be kept. Error: 1. Syscalls:
  /// socketpair, fork.
  [[nodiscard]] static Result<std::unique_ptr<RightsProcess>> start();
  /// Waits for its end. Syscalls: close, waitpid.
  ~RightsProcess() override;

  [[nodiscard]] Result<Fd> open_xdp_socket() override;
  [[nodiscard]] Result<SteerFds> attach_program(const SteerRequest& request) override;
  [[nodiscard]] Result<void> set_socket(int map, std::uint32_t queue, int xsk) override;
  [[nodiscard]] bool force_buffer(int socket, int option, int bytes) noexcept override;

 private:
  RightsProcess(Fd socket, pid_t pid) : socket_{std::move(socket)}, pid_{pid} {}
  std::mutex mutex_;  // the main thread and the transfer's ask
  Fd socket_;
  pid_t pid_;
};

}  // namespace onehop::confine
