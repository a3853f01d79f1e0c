// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The list of system calls that a transfer makes, and the filter (seccomp(2)) that lets no other
// through: it fails with EPERM, or with ENOSYS where its number is newer than the list, since C
// libraries then take an older one.
//
// What io_uring's ring is asked for passes no filter: it opens sockets of any kind and changes
// attributes of files by their names. So there is a ring where a user asked for one, and no other.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"

struct sock_filter;

namespace onehop::confine {

/// When a call of the list is let through.
enum class Let : std::uint8_t {
  always,
  own_thread,        ///< clone: a thread of this process, never another process
  own_process,       ///< the first argument is this process, or 0 for it
  transfer_socket,   ///< socket: TCP, UDP, netlink; Unix datagrams, as services want streams
  no_typing,         ///< ioctl: all but what types on a terminal, or has a signal sent
  no_owner,          ///< fcntl: no signal to another process (F_SETOWN and its like)
  own_settings,      ///< prctl: what changes no privilege
  no_setuid,         ///< fchmod: no program that runs as its owner is made
  by_plain_user,     ///< chmod: as no_setuid, and not by root: system files are root's, and
                     ///< Landlock has no rule for it
  by_plain_user_at,  ///< fchmodat likewise
  by_io_uring,       ///< where files are read and written by io_uring
};

struct SystemCall {
  std::string_view name;
  int number = 0;
  Let let = Let::always;
};

/// SeccompNeeds: what not every transfer needs.
struct SeccompNeeds {
  bool has_io_uring = false;
  bool is_root = false;
};

/// system_calls is the list, for this machine's processor.
[[nodiscard]] std::span<const SystemCall> system_calls() noexcept;
/// describe: "" where a call is let through always, else when.
[[nodiscard]] std::string_view describe(Let let) noexcept;

/// make_filter: pure, for restrict_calls() and its test.
[[nodiscard]] std::vector<sock_filter> make_filter(const SeccompNeeds& needs, int process);

/// has_seccomp: this kernel has filters. Syscalls: seccomp.
[[nodiscard]] bool has_seccomp() noexcept;

/// restrict_calls puts the filter on for good, on all threads. It takes PR_SET_NO_NEW_PRIVS.
/// Error: 9. Syscalls: seccomp.
[[nodiscard]] Result<void> restrict_calls(const SeccompNeeds& needs);

}  // namespace onehop::confine
