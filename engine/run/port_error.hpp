// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Which errors of a port end a session.
#pragma once

#include <cerrno>

namespace onehop::run {

/// is_port_lost: ENETDOWN clears itself when the link is back. EMSGSIZE means that the MTU was lowered: frames are
/// refused, as if lost, until the plane's path_update brings the new size. Where none comes, silence ends the session.
[[nodiscard]] constexpr bool is_port_lost(int error) noexcept {
  return error != 0 && error != ENETDOWN && error != EMSGSIZE;
}

}  // namespace onehop::run
