// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Loads lossy.bpf.c onto the middle namespace's two veths. The kernel keeps it with the devices;
// nothing is pinned.
#pragma once

#include <cstdint>

#include "engine/base/result.hpp"

namespace onehop::lab {

struct LossOptions {
  int to_a_ifindex = 0;
  int to_b_ifindex = 0;
  std::uint32_t loss_ppm = 0;          ///< from a to b
  std::uint32_t reverse_loss_ppm = 0;  ///< from b to a
};

/// attach_loss must be called by a thread that is in the middle namespace. Syscalls: bpf, and
/// netlink by libbpf.
[[nodiscard]] Result<void> attach_loss(const LossOptions& options);

}  // namespace onehop::lab
