// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A folder for what is this user's alone: keys, remembered rates, the sockets of running transfers.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <string>

namespace onehop {

/// make_private_folder makes a folder of mode 0700, also where the umask takes rights of the user's
/// own: no later run could use it. One that is there is left as it is. False: errno says why.
inline bool make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), S_IRWXU) != 0) return errno == EEXIST;
  return ::chmod(path.c_str(), S_IRWXU) == 0;
}

}  // namespace onehop
