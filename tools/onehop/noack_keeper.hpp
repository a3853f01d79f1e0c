// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// NoAckKeeper: a process of its own that sets a Wi-Fi interface's no-ack map and undoes it when this one ends, however it
// ends.
//
//   onehop send ──set / clear──▶ keeper ──▶ nl80211
//        ╳ exit, Ctrl-C, SIGKILL ──▶ end of file ──▶ map 0, its note removed
//
// It keeps the privilege that the sender gives up. It is made before the code is read, so that it holds no secret, and
// before there are threads. Signals of the terminal do not reach it. Should it be killed too, its note is left, without a
// lock (noack_record.hpp), and `onehop doctor` says so.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::tool {

class NoAckKeeper {
 public:
  struct Config {
    int ifindex = 0;
    std::string interface;      ///< its name, for errors
    std::uint16_t map = 0;      ///< bit n: TID n
    std::string record_folder;
  };

  /// start sees that the map can be set, by setting none, and forks. Errors: io_unavailable where the interface is not
  /// Wi-Fi or its driver has no map, privilege_missing. Syscalls: socket, bind, sendto, recvmsg, socketpair, fork.
  [[nodiscard]] static Result<NoAckKeeper> start(const Config& config);
  /// The end of it undoes the map and waits for the keeper's end.
  ~NoAckKeeper();
  NoAckKeeper(NoAckKeeper&& other) noexcept;
  NoAckKeeper& operator=(NoAckKeeper&&) = delete;

  [[nodiscard]] int ifindex() const noexcept { return config_.ifindex; }
  /// set and clear return when it is done. Syscalls: send, recv.
  [[nodiscard]] Result<void> set();
  [[nodiscard]] Result<void> clear();

 private:
  NoAckKeeper(Config config, Fd socket, pid_t pid);
  [[nodiscard]] Result<void> ask(char verb);

  Config config_;
  Fd socket_;
  pid_t pid_;
};

/// noack_map_of: the one TID that data frames have, best effort (0) or background (1). //= IEEE 802.1D-2004 annex G
[[nodiscard]] constexpr std::uint16_t noack_map_of(bool is_background) noexcept { return is_background ? 2 : 1; }

/// noack_warning says what the map does and to whom, before it is set.
[[nodiscard]] std::string noack_warning(const NoAckKeeper::Config& config);

}  // namespace onehop::tool
