// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// sender_token: by what a receiver knows again a sender whose connection died (message.hpp,
// SenderToken).
//
//   SHA-256(boot id of this machine and user id, key of the code, hash of the manifest), cut to 16
//   bytes
//
// The same command gives the same token until the next boot. Another machine does not know the boot
// id (128 random bits of the kernel), and a receiver that learns the token can use it nowhere else.
// Set-up code, any thread.
#pragma once

#include "control/session/code.hpp"
#include "control/session/message.hpp"

namespace onehop::host {

/// sender_token: Error where the kernel tells no boot id. Syscalls: open, read, getuid.
[[nodiscard]] Result<session::SenderToken> sender_token(const session::PairingKey& key,
                                                        const Digest& manifest_hash);

}  // namespace onehop::host
