// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the verbs of `onehop p2p` do, one function each. They block until it is done, and an
// interrupt ends them without anything half done. Main thread.
#pragma once

#include "engine/base/result.hpp"
#include "tools/onehop/p2p/p2p_command.hpp"
#include "tools/onehop/text/report.hpp"

namespace onehop::p2p {

/// check_pin finds a mistyped one before the other side has to refuse it. Of 4 digits none is for
/// checking. The PIN does not appear in the error.
//= Wi-Fi Simple Configuration Technical Specification 2.0.5, section 7.4.1
[[nodiscard]] Result<void> check_pin(const std::string& pin);

Result<void> show_status(const P2pOptions& options, const tool::Reporter& reporter);
Result<void> find_peers(const P2pOptions& options, const tool::Reporter& reporter);
Result<void> connect_peer(const P2pOptions& options, const tool::Reporter& reporter);
Result<void> accept_peer(const P2pOptions& options, const tool::Reporter& reporter);
Result<void> host_group(const P2pOptions& options, const tool::Reporter& reporter);
Result<void> join_group(const P2pOptions& options, const tool::Reporter& reporter);
Result<void> leave_groups(const P2pOptions& options, const tool::Reporter& reporter);

}  // namespace onehop::p2p
