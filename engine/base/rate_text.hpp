// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Rates as people write them, in options, law specifications, lab profiles; and amounts as people
// read them. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop {

/// parse_rate reads "600Mbit", "1.5G", "800k", "600000000" in bits per second, and "75MB/s" in
/// bytes: 8 kbit/s to 1 Tbit/s.
[[nodiscard]] Result<BytesPerSecond> parse_rate(std::string_view text);

/// amount_text has three digits and a prefix of 1000s: "1.57 GB", "562 Mbit/s".
[[nodiscard]] std::string amount_text(double value, std::string_view unit);

}  // namespace onehop
