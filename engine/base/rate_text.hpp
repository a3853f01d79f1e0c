// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A rate as people write it, in options, law specifications, lab profiles. Set-up, any thread.
#pragma once

#include <string_view>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop {

/// parse_rate reads "600Mbit", "1.5G", "800k", "600000000": bits per second, 8 kbit/s to 1 Tbit/s.
[[nodiscard]] Result<BytesPerSecond> parse_rate(std::string_view text);

}  // namespace onehop
