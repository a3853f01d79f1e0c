// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// replace_file: a small file that others never see half written. Any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace onehop::disk {

/// replace_file writes `text` beside `file` and gives it its name, also where that exists;
/// EEXIST where that is neither a regular file nor a link. The file gets `mode` under any umask. 0
/// or errno, and then nothing is left beside it. Syscalls: lstat, unlink, open, fchmod, pwrite,
/// rename.
[[nodiscard]] int replace_file(const std::string& file, std::string_view text, mode_t mode);

}  // namespace onehop::disk
