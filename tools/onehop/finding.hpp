// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How `send` finds its receiver, and `recv` its senders, where nobody names an address.
//
//   send: to nobody, or to a name ─▶ look ─▶ none: what may hinder it ─▶ look on, or exit 3
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
/// on a link of this machine. An address, what has a port, and a name that nobody answers to and
/// name service knows, stay as they are. It waits for as long as --wait says. A paired device that
/// answers is taken, and named in `command`, where no code was given. Errors: 2, where several
/// answer and nobody can choose; 3; 4, where what answers under a paired device's name is another
/// one; 7; 8; 9.
[[nodiscard]] Result<void> find_receiver(SendCommand& command, const std::optional<User>& user,
                                         const Reporter& reporter);

/// finder_of gives what looks again for the receiver that find_receiver() found, for half a second;
/// nothing: it was not looked for. Errors: 8, where paired devices cannot be read.
[[nodiscard]] Result<std::function<std::string()>> finder_of(const SendCommand& command,
                                                             const std::optional<User>& user,
                                                             const Reporter& reporter);

/// find_pairing gives the address of the other device that pairs on a link of this machine; empty:
/// nobody does yet. It does not wait. Errors: as find_receiver().
[[nodiscard]] Result<std::string> find_pairing(const PairCommand& command,
                                               const Reporter& reporter);

/// answering_of: on which links, as whom and for which address a receiver answers; nothing where it
/// is hidden, or has no link that the kernel knows.
[[nodiscard]] std::optional<find::Responder::Options> answering_of(const RecvCommand& command);

}  // namespace onehop::tool
