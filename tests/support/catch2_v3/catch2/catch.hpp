// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Catch2's one header of version 2, where version 3 is installed (Debian 13, Ubuntu 24.04).
#pragma once

#include <catch2/catch_all.hpp>

namespace Catch {
using Matchers::EndsWith;
using Matchers::StartsWith;
inline auto Contains(const std::string& text) { return Matchers::ContainsSubstring(text); }
}  // namespace Catch
using Catch::Approx;
