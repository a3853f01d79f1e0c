// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ControlSocket: wpa_supplicant's control socket, the one that wpa_cli uses. It is for one thing: a
// group wider than 20 MHz, which the D-Bus interface of wpa_supplicant 2.10 cannot ask for
// (GroupAdd and Connect hand on ht40=0 and vht=0 there). Owns a socket. One thread; ask() blocks.
//= wpa_supplicant 2.10, ctrl_iface.c: P2P_CONNECT, P2P_GROUP_ADD
#pragma once

#include <string>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::p2p {

class ControlSocket {
 public:
  /// open: `setting` is what wpa_supplicant calls ctrl_interface: a folder, or "DIR=... GROUP=...".
  /// Error io_unavailable: it has none; privilege_missing: it is not for this user.
  /// Syscalls: socket, bind, connect.
  [[nodiscard]] static Result<ControlSocket> open(const std::string& setting,
                                                  const std::string& interface);
  /// ask returns the answer without its newline. Syscalls: send, poll, recv.
  [[nodiscard]] Result<std::string> ask(const std::string& command, const std::string& attempt);

 private:
  explicit ControlSocket(Fd fd) : fd_{std::move(fd)} {}
  Fd fd_;
};

/// control_folder reads the folder out of `setting`. Pure.
[[nodiscard]] std::string control_folder(const std::string& setting);

}  // namespace onehop::p2p
