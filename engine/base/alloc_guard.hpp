// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AllocGuard proves that the engine core allocates nothing. In a build with -Dalloc_guard=true
// malloc aborts on a thread that is inside a guard; in other builds it costs nothing.
#pragma once

namespace onehop {

class AllocGuard {
 public:
  AllocGuard() noexcept;
  ~AllocGuard();
  AllocGuard(const AllocGuard&) = delete;
  AllocGuard& operator=(const AllocGuard&) = delete;

  /// is_built_in says whether this build enforces the guard.
  [[nodiscard]] static bool is_built_in() noexcept;
};

}  // namespace onehop
