// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Counters of the data path, read at the end of a run (or through PathReport).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace onehop {

/// DataPathCounters is owned and written by the engine core. All only grow.
struct DataPathCounters {
  std::uint64_t frames_sent_total = 0;
  std::uint64_t frames_received_total = 0;
  std::uint64_t data_bytes_sent_total = 0;  ///< file bytes, each transmission counted
  std::uint64_t retransmitted_bytes_total = 0;
  std::uint64_t tail_probes_total = 0;      ///< sent again because the peer had gone quiet
  std::uint64_t duplicate_bytes_total = 0;  ///< received a second time
  std::uint64_t auth_failures_total = 0;    ///< frames that did not authenticate
  std::uint64_t replays_total = 0;  ///< an old or repeated number: dropped before the key is tried
  /// No header of ours, or authentic with a field out of bounds; in reports also what the port
  /// dropped as no frame at all.
  std::uint64_t malformed_total = 0;
  std::uint64_t turns_total = 0;
  std::uint64_t wakeups_total = 0;   ///< returns from the port's wait
  std::uint64_t syscalls_total = 0;  ///< made by the engine core, waits included
  std::uint64_t key_updates_total = 0;

  DataPathCounters& operator+=(const DataPathCounters& other) noexcept {
    using Values = std::array<std::uint64_t, sizeof(DataPathCounters) / sizeof(std::uint64_t)>;
    auto sums = std::bit_cast<Values>(*this);
    const auto added = std::bit_cast<Values>(other);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += added[i];
    return *this = std::bit_cast<DataPathCounters>(sums);
  }
};

}  // namespace onehop
