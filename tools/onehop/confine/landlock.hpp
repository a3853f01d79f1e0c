// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Landlock (Linux 5.13 and later, landlock(7)): which files this thread, and those that it starts
// from then on, can still open, make or remove, under any user id. An open descriptor keeps its
// rights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace onehop::confine {

/// Reach is what may still be done to a path, and to all below it.
enum class Reach : std::uint8_t {
  read,    ///< files and folders are read
  device,  ///< a device is read and written
  output,  ///< files are made, written, renamed within their folder, and removed
  socket,  ///< as output, and Unix sockets are made
  tree,    ///< all that a receiver does to its destination
};

/// Place: what is not there is left out.
struct Place {
  std::string path;
  Reach reach = Reach::read;
};

/// LandlockRules: files, and where the kernel knows it (ABI 4) the TCP ports that can be connected
/// to. Signals and abstract Unix sockets of others are out of reach from ABI 6 on.
struct LandlockRules {
  std::vector<Place> places;
  std::vector<std::uint16_t> connect_ports;
};

/// landlock_abi is what the kernel knows; 0: none, errno says why. Syscalls:
/// landlock_create_ruleset.
[[nodiscard]] int landlock_abi() noexcept;

/// landlock_abi_min: before it no file can be renamed from one folder to another (Linux 5.19).
inline constexpr int landlock_abi_min = 2;

/// restrict_files applies the rules for good. It takes PR_SET_NO_NEW_PRIVS. Error: 9. Syscalls:
/// landlock_create_ruleset, openat, landlock_add_rule, landlock_restrict_self.
[[nodiscard]] Result<void> restrict_files(const LandlockRules& rules);

}  // namespace onehop::confine
