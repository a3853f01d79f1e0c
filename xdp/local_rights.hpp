// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LocalRights: Rights of a process that has them itself.
#pragma once

#include "engine/base/system/rights.hpp"

namespace onehop::xdp {

class LocalRights : public Rights {
 public:
  /// Errors: 9, 10. Syscalls: socket.
  [[nodiscard]] Result<Fd> open_xdp_socket() override;
  /// Errors: 9, 10. Syscalls: getsockname, and those of attach_steer().
  [[nodiscard]] Result<SteerFds> attach_program(const SteerRequest& request) override;
  /// Error: 9. Syscalls: bpf.
  [[nodiscard]] Result<void> set_socket(int map, std::uint32_t queue, int xsk) override;
  /// Syscalls: setsockopt.
  [[nodiscard]] bool force_buffer(int socket, int option, int bytes) noexcept override;
};

/// rights: those that another process keeps for this one, or its own.
[[nodiscard]] Rights& rights() noexcept;

}  // namespace onehop::xdp
