// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Lab rings: transfers of the real program over the lab's link, UDP and AF_XDP by turns, each with
// faults of its own: an end that is stopped, a link whose rate jumps by four, an interface that
// goes down, another MTU. After each the link must be full again, 90 % of its rate, within 100 ms;
// and the file must arrive whole.
//
//   run_lab_rings ─▶ Lab::run ─▶ this program again, inside
//                                └─▶ LabTransfer ─▶ fault ─▶ what arrives, each millisecond
//
// Root. A machine that did not let us look in time proves nothing: such a fault is played again,
// and counted.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/result.hpp"
#include "tools/labs/stress/fault.hpp"

namespace onehop::stress {

/// lab_faults: what a kernel and a shaper can be made to do.
inline constexpr FaultSet lab_faults = bit_of(Fault::receiver_stall) | bit_of(Fault::sender_stall) |
                                       bit_of(Fault::drain_up) | bit_of(Fault::drain_down) |
                                       bit_of(Fault::link_down) | bit_of(Fault::mtu);

struct LabRingsOptions {
  std::uint64_t seed = 1, first = 0, count = 10;
  std::string io;               ///< udp, afxdp; empty: by turns
  std::string law;              ///< empty: the program's default
  FaultSet kinds = lab_faults;  ///< to draw from
  bool is_json = false, is_quiet = false;
};

/// run_lab_rings builds the lab and plays; the exit code is 1 where something did not recover.
[[nodiscard]] Result<int> run_lab_rings(const LabRingsOptions& options);

}  // namespace onehop::stress
