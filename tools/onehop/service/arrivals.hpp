// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Arrivals: a process of its own ("onehop-arrivals") that runs a program after each session, so
// that the one that parses a peer's bytes can start none.
//
//   onehop ── values of a session ──▶ onehop-arrivals ─ fork, exec ─▶ PROGRAM
//
// There is no shell, and no argument: what a peer chose is in the environment alone, in variables
// that onehop-arrivals names itself. Else whoever took over the first process, which can start no
// program, would start one by LD_PRELOAD. One program runs at a time; the others wait in the
// socket, and what does not fit there is told and left out.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::tool {

class Arrivals {
 public:
  /// start: as the user that we are by now, and before there are threads. Error: 8, it is no
  /// program that can be run; 1. Syscalls: access, socketpair, fork.
  [[nodiscard]] static Result<std::unique_ptr<Arrivals>> start(const std::string& program);
  /// run has it run with `values` in its environment, under `names`. Error: too many wait.
  /// Syscalls: send.
  static constexpr std::array names{"ONEHOP_DEVICE", "ONEHOP_ADDRESS", "ONEHOP_FOLDER",
                                    "ONEHOP_PATH",   "ONEHOP_FILES",   "ONEHOP_BYTES",
                                    "ONEHOP_SECONDS"};
  [[nodiscard]] Result<void> run(const std::array<std::string, names.size()>& values) const;

 private:
  explicit Arrivals(Fd socket) : socket_{std::move(socket)} {}
  Fd socket_;  // its end is the other process's end
};

}  // namespace onehop::tool
