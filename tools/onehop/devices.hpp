// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Paired devices, as the commands use them: whose they are, who this one says it is, and how they
// are found.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "control/find/questioner.hpp"
#include "control/pair/device_hello.hpp"
#include "control/transfer/api/transfer.hpp"
#include "tools/onehop/options.hpp"
#include "tools/onehop/privilege.hpp"

namespace onehop::tool {

/// shown_name is what this machine is called: `wanted`, or the host's name.
[[nodiscard]] std::string shown_name(const std::string& wanted);

/// has_code: --code-file or ONEHOP_CODE gives one, which then counts.
[[nodiscard]] bool has_code(const OutputOptions& output);

/// devices_of is what a Transfer of this user is to know of devices; `to`: the one to send to.
[[nodiscard]] api::Devices devices_of(const std::optional<User>& user, const OutputOptions& output,
                                      std::string to = {});

/// read_peers reads the paired devices of this user; none where there is no place for them.
[[nodiscard]] Result<pair::PeerBook> read_peers(const std::optional<User>& user);

/// peer_hash_of is what this device's answers show. Who has no key shows random bytes. Error 8.
[[nodiscard]] Result<std::function<find::PeerHash(const find::Nonce&, const find::Instance&)>>
peer_hash_of(const std::optional<User>& user);

/// device_of is the paired device that an answer is of, by our name; empty: none.
[[nodiscard]] std::string device_of(const std::vector<pair::Peer>& peers,
                                    const find::Answer& answer);

/// Addressee: what `--to DEVICE@HOST` says. Without an @ it is a host alone.
struct Addressee {
  std::string device, host;
};
[[nodiscard]] Addressee addressee_of(const std::string& to);

}  // namespace onehop::tool
