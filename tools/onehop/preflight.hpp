// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What a transfer needs of this machine, checked before it asks the other side for anything. Each
// check is of this moment and leaves nothing behind: its result can change, and the later use
// reports errors of its own.
#pragma once

#include <string>

#include "control/transfer/settings.hpp"
#include "engine/base/result.hpp"

namespace onehop::tool {

/// folder_of a file's name: what its last slash ends, or this folder.
[[nodiscard]] std::string folder_of(const std::string& file);

/// check_folder: files can be received into `folder` by who this process is now. Syscalls: stat,
/// faccessat.
[[nodiscard]] Result<void> check_folder(const std::string& folder);

/// check_output_files: the files of --trace and --receipt, which need not exist, can be written; an
/// empty name is none. Syscalls: stat, faccessat.
[[nodiscard]] Result<void> check_output_files(const api::Options& options);

/// check_interface: there is one of this name; an empty name is none. Error: 9, for the user named
/// it, as doctor says of it. Syscalls: those of if_nametoindex.
[[nodiscard]] Result<void> check_interface(const std::string& interface);

/// check_udp_port: no other program holds the UDP port of the data. If the name is not an address,
/// the listener reports it. Syscalls: socket, bind, close.
[[nodiscard]] Result<void> check_udp_port(const transfer::Endpoint& listen);

}  // namespace onehop::tool
