// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Entry faults: errnos that are about one entry of a list, its name, its folder or what stands in
// its way. Such an entry is left out, and all else is taken. Any other errno is about the disk or
// this machine, and ends the session.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>

namespace onehop::file {

[[nodiscard]] constexpr bool is_entry_fault(int errno_value) noexcept {
  constexpr std::array faults{EACCES, EBUSY,  EEXIST,  EFBIG,        EILSEQ,    EINVAL, EISDIR,
                              ELOOP,  EMLINK, ENXIO,   ENAMETOOLONG, ENOTEMPTY, EPERM,  EROFS,
                              EXDEV,  ENODEV, ENOTDIR, EOPNOTSUPP,   ETXTBSY};
  return std::ranges::find(faults, errno_value) != faults.end();
}

}  // namespace onehop::file
