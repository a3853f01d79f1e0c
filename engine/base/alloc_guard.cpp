// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/alloc_guard.hpp"

namespace onehop {

[[gnu::weak]] AllocGuard::AllocGuard() noexcept = default;
[[gnu::weak]] AllocGuard::~AllocGuard() = default;
[[gnu::weak]] bool AllocGuard::is_linked() noexcept { return false; }

}  // namespace onehop
