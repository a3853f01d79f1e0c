// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The lab's slow disk: onehop-slow-disk (tests/support/slow_disk), a FUSE file system, mounted for
// the time of the lab.
//
//   FOLDER/NAME.disk/files   where the bytes are
//   FOLDER/NAME.disk/mnt     what the receiver writes to
#pragma once

#include <sys/types.h>

#include <string>

#include "engine/base/result.hpp"
#include "tools/labs/lab/profile.hpp"

namespace onehop::lab {

[[nodiscard]] std::string disk_base(const DiskProfile& disk, const std::string& lab);
[[nodiscard]] std::string disk_mount(const std::string& base);

/// start_disk mounts it and returns the process that serves it.
[[nodiscard]] Result<pid_t> start_disk(const DiskProfile& disk, const std::string& base);

/// stop_disk unmounts, ends the process if it is still the one, and removes the files. `pid` 0:
/// unknown.
[[nodiscard]] Result<void> stop_disk(const std::string& base, pid_t pid);

}  // namespace onehop::lab
