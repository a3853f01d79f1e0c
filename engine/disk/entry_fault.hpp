// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Entry faults: errnos that are about one entry of a list, its name, its folder or what stands in
// its way. Such an entry is left out, and all else is taken. Any other errno is about the disk or
// this machine, and ends the session.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>

namespace onehop::disk {

[[nodiscard]] constexpr bool is_entry_fault(int errno_value) noexcept {
  constexpr std::array faults{EACCES, EBUSY,  EEXIST,  EFBIG,        EILSEQ,    EINVAL, EISDIR,
                              ELOOP,  EMLINK, ENXIO,   ENAMETOOLONG, ENOTEMPTY, EPERM,  EROFS,
                              EXDEV,  ENODEV, ENOTDIR, EOPNOTSUPP,   ETXTBSY};
  return std::ranges::find(faults, errno_value) != faults.end();
}

/// is_disk_fault: an entry fault that is none where a file is open and was written to before. The
/// kernel makes a file system read only whose disk fails.
[[nodiscard]] constexpr bool is_disk_fault(int errno_value) noexcept {
  return errno_value == EROFS || errno_value == EINVAL || errno_value == ENODEV ||
         errno_value == ENXIO;
}

}  // namespace onehop::disk
