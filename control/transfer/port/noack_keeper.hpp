// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// NoAckKeeper: a separate process that sets a Wi-Fi interface's no-ack map, and clears it when this
// process ends, however it ends.
//
//   onehop send ──set / clear──▶ keeper ──▶ nl80211
//        ╳ exit, Ctrl-C, SIGKILL ──▶ end of file ──▶ map 0, its note removed
//
// It keeps the privilege that the sender drops. It is forked before the code is read, so that it
// holds no secret, and before there are threads. Signals of the terminal do not reach it. If it is
// killed, too, its record is left without a lock (noack_record.hpp), and `onehop doctor` reports
// it.
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

  /// start checks that the map can be set, by setting an empty one, and forks. Errors:
  /// io_unavailable if the interface is not Wi-Fi or its driver has no map, privilege_missing.
  /// Syscalls: socket, bind, sendto, recvmsg, socketpair, fork.
  [[nodiscard]] static Result<NoAckKeeper> start(const Config& config);
  /// The destructor clears the map and waits for the keeper's end.
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

/// noack_tid_of: the TID of data frames while their MAC acknowledges none: the TID of the access
/// category best effort (0, 3) or background (1, 2) that other programs do not use. Under a
/// block-ack agreement, frames without acknowledgement use the TID's sequence numbers, but bypass
/// the receiver's reorder buffer. After 2048 of them, half of all numbers, the buffer takes the
/// acknowledged frames that follow for old ones and drops them, until 2048 more have passed: a map
/// for TID 0 cuts the station off. tests/vm/noack shows that a map for our TID does not.
//= IEEE 802.1D-2004 annex G; IEEE 802.11-2020 10.25.6
//= Linux net/mac80211/rx.c, ieee80211_rx_reorder_ampdu()
[[nodiscard]] constexpr int noack_tid_of(bool is_background) noexcept {
  return is_background ? 2 : 3;
}

/// noack_warning says what the map affects, before it is set.
[[nodiscard]] std::string noack_warning(const NoAckKeeper::Config& config);
/// check_noack checks what else the map requires. On its TID, frames after those of an earlier run
/// may be dropped.
[[nodiscard]] Result<void> check_noack(bool is_repair_lazy, bool is_same_interface);

}  // namespace onehop::transfer
