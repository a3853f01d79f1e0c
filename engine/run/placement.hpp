// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Where the engine core runs.
#pragma once

#include <optional>

#include "engine/base/result.hpp"

namespace onehop::run {

/// choose_core answers --core: the one asked for if this process may use it (else an error with
/// exit code 2). Without a wish there is no pin on a machine of up to two CPUs: there a pinned
/// engine fights the other end's softirq or its own file thread for one core while the other idles.
/// On larger machines it is the last allowed CPU. Syscalls: sched_getaffinity.
[[nodiscard]] Result<std::optional<int>> choose_core(std::optional<int> wish);

}  // namespace onehop::run
