// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// make_law: a law from what the command line says. Setup code, any thread.
//
//   auto             CupidCap{AutoLaw}
//   safe-range | wdtcp | wdtcp:paper | cupid | fixed:RATE
//   is_repair_lazy   LossMask{any of them but auto, which tells losses apart itself}
//   has_qcut         Qcut{any of the above}
#pragma once

#include <memory>
#include <string_view>

#include "control/law/controller.hpp"
#include "control/law/params.hpp"
#include "engine/base/result.hpp"

namespace onehop::law {

/// law_words is for usage texts and messages.
inline constexpr std::string_view law_words = "auto, safe-range, wdtcp, wdtcp:paper, cupid, fixed:RATE";

struct LawOptions {
  std::string_view spec = "auto";        ///< one of law_words, RATE as engine/base/rate_text.hpp reads it
  std::string_view target = "under";     ///< "under", "mid" or "zero": of safe-range, wherever it sets the rate
  std::string_view bounds = "measured";  ///< "measured" or "strict": likewise
  bool has_qcut = false;
  bool is_repair_lazy = false;           ///< [FWP]: loss on the air is hidden from the law
  LawParams params{};                    ///< safe_range's target and bounds are overwritten
};

/// make_law fails with ExitCode::usage and names what would be legal.
[[nodiscard]] Result<std::unique_ptr<Controller>> make_law(const LawOptions& options);

}  // namespace onehop::law
