// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Named network namespaces, as `ip netns` keeps them (/run/netns/NAME).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "engine/base/fd.hpp"
#include "engine/base/result.hpp"

namespace onehop::lab {

[[nodiscard]] bool has_netns(const std::string& name);

/// InNetns moves the calling thread into a namespace and back. A thread that cannot go back ends
/// the program.
class InNetns {
 public:
  [[nodiscard]] static Result<InNetns> enter(const std::string& name);
  InNetns(InNetns&&) = default;
  InNetns& operator=(InNetns&&) = delete;
  ~InNetns();

 private:
  explicit InNetns(Fd home) noexcept : home_{std::move(home)} {}
  Fd home_;
};

/// become_host moves this process for good: the namespace, and a /sys that shows its devices.
/// Between fork and exec. Syscalls: setns, unshare, mount, umount2.
[[nodiscard]] Result<void> become_host(const std::string& name);

/// processes_in lists who lives in a namespace. Reads /proc.
[[nodiscard]] std::vector<pid_t> processes_in(const std::string& name);

}  // namespace onehop::lab
