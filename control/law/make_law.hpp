// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// make_law: a law from what the command line says. Setup code, any thread.
#pragma once

#include <memory>
#include <string_view>

#include "control/law/controller.hpp"
#include "control/law/safe_range.hpp"
#include "engine/base/result.hpp"

namespace onehop::law {

struct LawOptions {
  std::string_view spec = "safe-range";  ///< "safe-range" or "fixed:RATE", RATE as engine/base/rate_text.hpp reads it
  std::string_view target = "under";     ///< "under", "mid" or "zero"
  std::string_view bounds = "measured";  ///< "measured" or "strict"
  SafeRangeParams params{};              ///< its target and bounds are overwritten
};

/// make_law fails with ExitCode::usage and names what would be legal.
[[nodiscard]] Result<std::unique_ptr<Controller>> make_law(const LawOptions& options);

}  // namespace onehop::law
