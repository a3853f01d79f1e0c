// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// wpa_supplicant's control socket, the one that wpa_cli uses. It has one use: a group wider than 20
// MHz, which the D-Bus interface of wpa_supplicant 2.10 cannot ask for (GroupAdd and Connect pass
// on ht40=0 and vht=0). One thread; ask_control blocks.
//= wpa_supplicant 2.10, ctrl_iface.c: P2P_CONNECT, P2P_GROUP_ADD
#pragma once

#include <string>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop::p2p {

/// wpa_supplicant answers within milliseconds, or not at all.
inline constexpr Nanos control_limit = 10s;

/// open_control: `setting` is wpa_supplicant's ctrl_interface: a folder, or "DIR=... GROUP=...".
/// `limit` is the longest wait for an answer. Error io_unavailable: it has none; privilege_missing:
/// not for this user. Syscalls: socket, setsockopt, bind, connect.
[[nodiscard]] Result<Fd> open_control(const std::string& setting, const std::string& interface,
                                      Nanos limit = control_limit);
/// ask_control returns the answer without its newline. Syscalls: recv, send.
[[nodiscard]] Result<std::string> ask_control(const Fd& fd, const std::string& command,
                                              const std::string& attempt);

}  // namespace onehop::p2p
