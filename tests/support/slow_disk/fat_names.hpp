// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// FatNames: names as FAT has them, over a folder of a file system that has all: some are refused,
// the case that a name was made with is kept and not looked at, dots at the end are dropped.
// Letters beyond ASCII are not folded. Any thread.
#pragma once

#include <string>

namespace onehop::slow_disk {

/// fat_path is `path`, relative to `folder`, as it stands there: each component is the one that FAT
/// would find, or as it was given, less its dots at the end.
[[nodiscard]] std::string fat_path(int folder, const std::string& path);

/// is_fat_name: FAT would make a file of this name, the last component of `path`.
[[nodiscard]] bool is_fat_name(const std::string& path);

}  // namespace onehop::slow_disk
