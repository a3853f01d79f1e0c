// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// NoAckKeeper: a process of its own that sets a Wi-Fi interface's no-ack map and undoes it when
// this one ends, however it ends.
//
//   onehop send ──set / clear──▶ keeper ──▶ nl80211
//        ╳ exit, Ctrl-C, SIGKILL ──▶ end of file ──▶ map 0, its note removed
//
// It keeps the privilege that the sender gives up. It is made before the code is read, so that it
// holds no secret, and before there are threads. Signals of the terminal do not reach it. Should it
// be killed too, its note is left, without a lock (noack_record.hpp), and `onehop doctor` says so.
#pragma once

#include <sys/types.h>

#include <string>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::transfer {

class NoAckKeeper {
 public:
  struct Config {
    int ifindex = 0;
    std::string interface;  ///< its name, for errors
    int tid = 0;            ///< whose frames are not acknowledged
    std::string record_folder;
  };

  /// start sees that the map can be set, by setting none, and forks. Errors: io_unavailable where
  /// the interface is not Wi-Fi or its driver has no map, privilege_missing. Syscalls: socket,
  /// bind, sendto, recvmsg, socketpair, fork.
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

/// noack_tid_of: the TID that data frames have while their MAC acknowledges none: of the access
/// categories best effort (0, 3) and background (1, 2) the one that nobody else uses. Under a
/// block-ack agreement frames without acknowledgement count on in the TID's sequence numbers, but
/// pass by the receiver's reorder buffer. Once there were 2048 of them, half of all numbers, the
/// buffer takes the acknowledged frames that follow for old ones and drops them, until 2048 more
/// have gone by: a map for TID 0 cuts the station off. tests/vm/noack shows that one for our TID
/// does not.
//= IEEE 802.1D-2004 annex G; IEEE 802.11-2020 10.25.6
//= Linux net/mac80211/rx.c, ieee80211_rx_reorder_ampdu()
[[nodiscard]] constexpr int noack_tid_of(bool is_background) noexcept {
  return is_background ? 2 : 3;
}

/// noack_warning says what the map does and to whom, before it is set.
[[nodiscard]] std::string noack_warning(const NoAckKeeper::Config& config);
/// check_noack: what else has to be so before the map is set. On its TID the frames after those of
/// an earlier run may be dropped.
[[nodiscard]] Result<void> check_noack(bool is_repair_lazy, bool is_same_interface);

}  // namespace onehop::transfer
