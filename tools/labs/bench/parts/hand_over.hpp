// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a byte costs more because one thread writes it and a thread on another CPU reads it: file
// thread and engine core are two threads at each end, and the parts of a transfer are measured on
// one.
#pragma once

#include <optional>
#include <utility>

namespace onehop::bench {

/// hand_over_ns_per_byte passes blocks from a thread on the first CPU to one on the second, as a
/// file thread passes them to the engine core. It returns what writing and reading a byte take
/// there of both CPUs, less what they take on one; medians over the blocks, waiting left out.
/// Nothing when a thread cannot be pinned or there is no memory.
[[nodiscard]] std::optional<double> hand_over_ns_per_byte(std::pair<int, int> cpus);

}  // namespace onehop::bench
