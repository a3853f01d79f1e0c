// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A path below a folder is opened one component at a time where openat2 is missing: Linux before
// 5.6, and sandboxes that cannot look into its arguments (systemd's RestrictSUIDSGID, which
// DynamicUser implies; old container runtimes).
//
// Each component is opened with O_NOFOLLOW from the descriptor of the one before, so a link that
// another process puts there between two calls is seen and never passed through by the kernel. ".."
// goes back to a descriptor that the walk came through, never to what the parent is by then. It
// takes two system calls for each folder of a path.
#pragma once

#include <sys/types.h>

#include <string_view>

#include "engine/base/fd.hpp"

namespace onehop::disk {

/// The kernel has openat2, and no sandbox forbids it. Asked once. Syscalls: openat2. Any thread.
[[nodiscard]] bool has_openat2() noexcept;

/// Which symbolic links a walk may pass through: none, or those that stay below the folder.
enum class Links { none, beneath };

/// walk_beneath is openat2(folder, path) with RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS, O_CLOEXEC,
/// and with RESOLVE_NO_SYMLINKS and O_NOFOLLOW for Links::none, which alone takes O_CREAT for what
/// is not there. Not open: errno as openat2 sets it.
/// Syscalls: openat, fstat; of a link readlinkat. A file thread or set-up calls it.
[[nodiscard]] Fd walk_beneath(int folder, std::string_view path, int flags, mode_t mode,
                              Links links) noexcept;

}  // namespace onehop::disk
