// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What this process may do with a file, by its effective user.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace onehop {

/// access_fault is 0 where `mode` (R_OK, W_OK, X_OK; F_OK: it is there) is allowed, else errno.
/// `flags`: AT_SYMLINK_NOFOLLOW. Syscalls: faccessat2; faccessat. Any thread.
[[nodiscard]] inline int access_fault(int folder, const char* leaf, int mode,
                                      int flags = 0) noexcept {
  if (::faccessat(folder, leaf, mode, AT_EACCESS | flags) == 0) return 0;
  // Old container runtimes answer with EPERM what they do not know, and faccessat2 is of Linux 5.8.
  // The other call knows our real user alone, who is the same one but in a program that is setuid.
  if (errno != EPERM) return errno;
  return ::syscall(SYS_faccessat, folder, leaf, mode) == 0 ? 0 : errno;
}

}  // namespace onehop
