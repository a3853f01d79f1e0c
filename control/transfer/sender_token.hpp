// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// sender_token: how a receiver recognizes a sender whose connection died (message.hpp,
// SenderToken).
//
//   SHA-256(boot id of this machine and user id, code, paths), cut to 16 bytes
//
// The same command gives the same token until the next boot. Another machine does not know the boot
// id (128 random bits of the kernel), and a receiver that learns the token can use it nowhere else.
// Set-up code, any thread.
#pragma once

#include <span>
#include <string>

#include "control/session/code/code.hpp"
#include "control/session/message.hpp"

namespace onehop::transfer {

/// sender_token does not depend on the content under the paths, which may change between two runs,
/// as may the order in which it is found. Error if the kernel reports no boot id. Syscalls: open,
/// read, getuid, getcwd.
[[nodiscard]] Result<session::SenderToken> sender_token(const session::PairingCode& code,
                                                        std::span<const std::string> paths,
                                                        const std::string& stream_name);

}  // namespace onehop::transfer
