// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Counters of the data path, written by the engine core and read at the end of a run (or through
// PathReport).
#pragma once

#include <cstdint>

namespace onehop {

/// DataPathCounters is owned and written by the engine core. All only grow.
struct DataPathCounters {
  std::uint64_t frames_sent_total = 0;
  std::uint64_t frames_received_total = 0;
  std::uint64_t data_bytes_sent_total = 0;  ///< file bytes, each transmission counted
  std::uint64_t retransmitted_bytes_total = 0;
  std::uint64_t tail_probes_total =
      0;  ///< frames sent again because the peer had gone quiet, lost or not
  std::uint64_t duplicate_bytes_total = 0;  ///< received a second time
  std::uint64_t auth_failures_total = 0;    ///< frames that did not authenticate
  std::uint64_t replays_total =
      0;  ///< an old or repeated packet number: dropped before the key is tried
  std::uint64_t malformed_total =
      0;  ///< no frame of ours by its header, or authentic with a field out of bounds
  std::uint64_t turns_total = 0;
  std::uint64_t wakeups_total = 0;   ///< returns from the port's wait
  std::uint64_t syscalls_total = 0;  ///< made by the engine core, waits included
  std::uint64_t key_updates_total = 0;

  DataPathCounters& operator+=(const DataPathCounters& other) noexcept {
    frames_sent_total += other.frames_sent_total;
    frames_received_total += other.frames_received_total;
    data_bytes_sent_total += other.data_bytes_sent_total;
    retransmitted_bytes_total += other.retransmitted_bytes_total;
    tail_probes_total += other.tail_probes_total;
    duplicate_bytes_total += other.duplicate_bytes_total;
    auth_failures_total += other.auth_failures_total;
    replays_total += other.replays_total;
    malformed_total += other.malformed_total;
    turns_total += other.turns_total;
    wakeups_total += other.wakeups_total;
    syscalls_total += other.syscalls_total;
    key_updates_total += other.key_updates_total;
    return *this;
  }
};

}  // namespace onehop
