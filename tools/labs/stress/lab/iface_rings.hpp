// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Interface rings: transfers of the real program over a real interface to a peer that runs `onehop
// recv`, with the faults that this end alone can have: the sender is stopped and goes on. After
// each the interface must be as busy as it was before, 90 % of it, within 100 ms. The link is left
// alone. No privilege beyond what the port needs.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/result.hpp"

namespace onehop::stress {

struct InterfaceRingsOptions {
  std::uint64_t seed = 1, first = 0, count = 10;
  std::string interface, to;  ///< to: HOST[:PORT] of the peer, as `onehop send` takes it
  std::string io, law;        ///< empty: the program's default
  bool is_json = false, is_quiet = false;
};

/// run_interface_rings: the exit code is 1 where something did not recover. Each schedule is a
/// transfer that is interrupted at its end, so the peer keeps a part of a file.
[[nodiscard]] Result<int> run_interface_rings(const InterfaceRingsOptions& options);

}  // namespace onehop::stress
