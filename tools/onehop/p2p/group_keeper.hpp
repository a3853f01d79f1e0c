// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// GroupKeeper: a process of its own that ends the group when this one ends, however it ends.
//
//   onehop send --p2p ──path of the group──▶ keeper
//        ╳ exit, Ctrl-C, SIGKILL ──▶ end of file ──▶ Disconnect, on a connection of its own
//
// It keeps the privilege that the transfer gives up. It is made before there are threads and before
// a code is read, so that it holds no secret. Signals of the terminal do not reach it.
#pragma once

#include <sys/types.h>

#include <string>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::p2p {

class GroupKeeper {
 public:
  /// start forks, and waits until the keeper has seen what there was before. `interface` is the
  /// radio's. Syscalls: socketpair, fork, read.
  [[nodiscard]] static Result<GroupKeeper> start(const std::string& interface);
  /// The end of it ends the group, and waits until it is gone.
  ~GroupKeeper();
  GroupKeeper(GroupKeeper&& other) noexcept;
  GroupKeeper& operator=(GroupKeeper&&) = delete;

  /// keep says which group it is, once there is one. Until then the end of this process ends what
  /// is being formed.
  void keep(const std::string& group_path);

 private:
  GroupKeeper(Fd socket, pid_t pid) : socket_{std::move(socket)}, pid_{pid} {}
  Fd socket_;
  pid_t pid_;
};

}  // namespace onehop::p2p
