// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Arrivals: a process of its own ("onehop-arrivals") that runs a program after each session, so
// that the one that parses a peer's bytes can start none.
//
//   onehop ── NAME=VALUE.. of a session ──▶ onehop-arrivals ─ fork, exec ─▶ PROGRAM
//
// There is no shell, and no argument: what a peer chose is in the environment alone. One program
// runs at a time; the others wait in the socket, and what does not fit there is told and left out.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::tool {

class Arrivals {
 public:
  /// start: as the user that we are by now, and before there are threads. Error: 8, it is no
  /// program that can be run; 1. Syscalls: access, socketpair, fork.
  [[nodiscard]] static Result<std::unique_ptr<Arrivals>> start(const std::string& program);
  /// run has it run with these in its environment. Error: too many wait. Syscalls: send.
  using Facts = std::vector<std::pair<std::string, std::string>>;
  [[nodiscard]] Result<void> run(const Facts& facts) const;

 private:
  explicit Arrivals(Fd socket) : socket_{std::move(socket)} {}
  Fd socket_;  // its end is the other process's end
};

}  // namespace onehop::tool
