// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How `send` finds its receiver, and `recv` its senders, if no address is given.
//
//   send: no --to, or a name      ─▶ look ─▶ none: what may hinder it ─▶ look on, or exit 3
//                                       └──▶ one: taken   several: a choice at the terminal
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "control/find/responder.hpp"
#include "tools/onehop/options.hpp"
#include "tools/onehop/privilege.hpp"
#include "tools/onehop/text/report.hpp"

namespace onehop::tool {

/// is_looked_for: it is empty, or a name without a port.
[[nodiscard]] bool is_looked_for(const std::string& to);

/// find_receiver replaces an empty --to, or a name in it, by the address of a receiver that answers
/// on a link of this machine. It leaves an address, an entry with a port, and a name that no
/// receiver answers to and name service knows. It waits for as long as --wait says. Without a code
/// it accepts a paired device that answers, and names it in `command`. Errors: 2, if several answer
/// and no user can choose; 3; 4, if another device answers under a paired device's name; 7; 8; 9.
[[nodiscard]] Result<void> find_receiver(SendCommand& command, const std::optional<User>& user,
                                         const Reporter& reporter);

/// finder_of gives what looks again for the receiver that find_receiver() found, for half a second;
/// nothing: it was not looked for. Errors: 8, where paired devices cannot be read.
[[nodiscard]] Result<std::function<std::string()>> finder_of(const SendCommand& command,
                                                             const std::optional<User>& user,
                                                             const Reporter& reporter);

/// find_pairing returns the address of the other device that pairs on a link of this machine;
/// empty: none does yet. It does not wait. Errors: as find_receiver().
[[nodiscard]] Result<std::string> find_pairing(const PairCommand& command,
                                               const Reporter& reporter);

/// answering_of: on which links, as whom and for which address a receiver answers; nothing where it
/// is hidden, or has no link that the kernel knows.
[[nodiscard]] std::optional<find::Responder::Options> answering_of(const RecvCommand& command);

}  // namespace onehop::tool
