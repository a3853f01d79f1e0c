// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Quantities as people read them: 553 Mbit/s, 1.5 GB, 0:42. SI units; a rate is bits per second.
// What people write is read by engine/base/rate_text.hpp.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/units.hpp"

namespace onehop::tool {

[[nodiscard]] std::string format_bytes(std::uint64_t bytes);  ///< "1.07 GB"
[[nodiscard]] std::string format_rate(BytesPerSecond rate);   ///< "553 Mbit/s"
[[nodiscard]] std::string format_span(double seconds);        ///< "0:42", "1:02:03"

/// files_text is "12/345 files", of at most 17 columns; "12/345+ files" where more may come.
[[nodiscard]] std::string files_text(std::uint64_t done, std::uint64_t total, bool is_all);

}  // namespace onehop::tool
