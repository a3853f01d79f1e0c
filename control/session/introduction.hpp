// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How two devices get to know each other, on a connection whose ends have proven that they have the
// same code.
//
//   sender   ─ who it is ──────────────────────────────────────▶
//   receiver ◀─────────────── who it is, proof of the secret that it has of the two, if it has one
//   sender   ─ proof of the same one, or of this connection's ──▶   receiver keeps the device
//   receiver ◀─────────────────────────────────────────── kept      sender keeps the device
//
// Each signs, with its device's key, what this connection alone has (TLS's exporter), so nobody can
// introduce a key that he does not have. A new secret of the two comes of the exporter as well.
//
// The connection may end before any of these, and the two ends then differ in what they wrote. So
// devices that have a secret in common keep that one. Where they have none, a sender that knows
// the receiver writes before it says so, and one that does not writes last: whoever does not know
// the other learns it last, and no two different secrets come of one pairing that was cut.
#pragma once

#include "control/session/channel/channel.hpp"

namespace onehop::session {

/// next_message waits for one; nothing: none came within `limit`, or the channel has ended.
[[nodiscard]] Task<std::optional<Message>> next_message(Channel& channel, Nanos limit);

/// first_message is what a sender says first but for its introduction, which is answered; nothing:
/// there is none. `is_paired`: the two devices know each other now.
[[nodiscard]] Task<std::optional<Message>> first_message(std::shared_ptr<Channel> channel,
                                                         const RecvOptions& options, RecvHost& host,
                                                         bool& is_paired);

/// introduce is the sender's: it says who this device is, and keeps who the other one is
/// (SessionHost::on_introduced). Errors: 5, where the other end does not want to; 4; the host's.
[[nodiscard]] Task<Result<void>> introduce(std::shared_ptr<Channel> channel,
                                           const SendOptions& options, SendHost& host);

}  // namespace onehop::session
