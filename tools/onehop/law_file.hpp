// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A law's parameters as a file: JSON, one object, as configs/law/safe-range.json. Set-up code.
#pragma once

#include <string>
#include <string_view>

#include "control/law/safe_range.hpp"
#include "engine/base/result.hpp"

namespace onehop::tool {

/// parse_law_params reads `text`; `name` is the file's, for errors. What is not in it keeps its default; a key that is
/// not known, a value out of its bounds and bounds that contradict each other are errors with exit code 2.
[[nodiscard]] Result<law::SafeRangeParams> parse_law_params(std::string_view text, const std::string& name);

}  // namespace onehop::tool
