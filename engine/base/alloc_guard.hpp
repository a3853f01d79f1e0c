// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// AllocGuard proves that the engine core allocates nothing. In a test that links
// tests/support/alloc_guard.cpp malloc aborts on a thread that is inside a guard; elsewhere it does
// nothing.
#pragma once

namespace onehop {

class AllocGuard {
 public:
  AllocGuard() noexcept;
  ~AllocGuard();
  AllocGuard(const AllocGuard&) = delete;
  AllocGuard& operator=(const AllocGuard&) = delete;

  /// is_linked says whether this program has the guard that aborts.
  [[nodiscard]] static bool is_linked() noexcept;
};

}  // namespace onehop
