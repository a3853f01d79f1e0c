// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Capabilities of this thread, and of those that it starts from then on.
#pragma once

#include <linux/capability.h>

#include <cstdint>

#include "engine/base/result.hpp"

#ifndef CAP_BPF
#define CAP_BPF 39
#endif

namespace onehop::confine {

/// Capabilities is a set of them: bit N is capability N of linux/capability.h.
using Capabilities = std::uint64_t;

[[nodiscard]] constexpr Capabilities bit_of(unsigned capability) noexcept {
  return Capabilities{1} << capability;
}

/// effective_capabilities: none where the kernel does not say. Syscalls: capget.
[[nodiscard]] Capabilities effective_capabilities() noexcept;

/// keep_capabilities gives up all but `kept` for good: no program that is started and no change of
/// user brings one back. What is not there is not kept. Error: 10. Syscalls: prctl, capget, capset.
[[nodiscard]] Result<void> keep_capabilities(Capabilities kept);

}  // namespace onehop::confine
