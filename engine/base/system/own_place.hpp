// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The files that belong to this program or library, found by its own place: PATH, LD_LIBRARY_PATH
// and the current folder are not used. A user that could not write this program could not write
// that file either: under sudo it runs as root.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "engine/base/result.hpp"

namespace onehop {

/// own_file is the file that this code is in: the program (/proc/self/exe), or the shared library;
/// empty: it is not known. Syscalls: readlink.
[[nodiscard]] std::filesystem::path own_file();

/// find_beside returns the first of `places` that is a file, relative to the folder of `self`;
/// empty: there is none. `attempt` is its purpose ("start"). Error 9: users that cannot write
/// `self` could have put the file there. Syscalls: readlink, stat.
[[nodiscard]] Result<std::string> find_beside(const std::filesystem::path& self,
                                              std::initializer_list<std::filesystem::path> places,
                                              std::string_view attempt);

}  // namespace onehop
