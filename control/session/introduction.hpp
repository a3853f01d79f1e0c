// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// How two devices get to know each other, on a connection whose ends have proven that they have the
// same code.
//
//   sender ─ Introduce ─▶ receiver: proves it, keeps the device ─ Introduce ─▶ sender: the same
//
// Each signs, with its device's key, what this connection alone has (TLS's exporter), so nobody can
// introduce a key that he does not have. The secret of the two comes of the exporter as well.
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

/// introduce says who this device is, and keeps who the other one is (SessionHost::on_introduced).
/// A receiver gives it what it heard. Errors: 5, where an end does not want to; 4; the host's.
[[nodiscard]] Task<Result<void>> introduce(std::shared_ptr<Channel> channel, Role role,
                                           const SessionOptions& options, SessionHost& host,
                                           std::optional<Introduce> heard);

}  // namespace onehop::session
