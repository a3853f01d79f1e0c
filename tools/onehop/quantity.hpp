// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Quantities as people write and read them: 600Mbit, 1.5 GB, 0:42. SI units; a rate is bits per second.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop::tool {

/// parse_rate reads "600Mbit", "1.5Gbit", "800k", "600000000" (bits per second).
[[nodiscard]] Result<BytesPerSecond> parse_rate(std::string_view text);

[[nodiscard]] std::string format_bytes(std::uint64_t bytes);     ///< "1.07 GB"
[[nodiscard]] std::string format_rate(BytesPerSecond rate);      ///< "553 Mbit/s"
[[nodiscard]] std::string format_span(double seconds);           ///< "0:42", "1:02:03"

}  // namespace onehop::tool
