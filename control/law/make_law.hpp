// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// make_law: a law from what the command line and a parameter file say. Setup code, any thread.
//
//   auto             CupidCap{AutoLaw}
//   safe-range | wdtcp | wdtcp:paper | cupid | fixed:RATE
//   is_repair_lazy   LossMask{any of them but auto, which tells losses apart itself}
//   has_qcut         Qcut{any of the above}
//
// The table in make_law.cpp has one line for each law: its word, the parameter files that it reads,
// and how it is made.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/law/controller.hpp"
#include "control/law/safe_range_params.hpp"
#include "engine/base/result.hpp"

namespace onehop::law {

/// LawParams: what a parameter file (configs/law) says, checked.
struct LawParams {
  SafeRangeParams safe_range;  ///< of every law that falls back to safe-range
  std::string law;             ///< which law the file is for; empty: there is no file
  std::string json, where;     ///< the file's text and name
};

/// read_params checks one JSON object against the keys of the law that its key "law" names. `where`
/// is for messages. It returns the law's name. It fails with ExitCode::usage on an unknown key, a
/// wrong type or a value out of range, and then `params` is as it was.
[[nodiscard]] Result<std::string> read_params(std::string_view json, std::string_view where,
                                              LawParams& params);
/// param_files names the laws that have a parameter file.
[[nodiscard]] std::vector<std::string_view> param_files();
/// uses_params: a law made from `spec` (and --qcut) reads the parameter file of the law `name`.
[[nodiscard]] bool uses_params(std::string_view spec, bool has_qcut, std::string_view name);
/// has_start_rate: the law begins at safe-range's rate_start, which a former run may know better.
[[nodiscard]] bool has_start_rate(std::string_view spec);

/// law_words is for usage texts and messages.
[[nodiscard]] std::string law_words();

struct LawOptions {
  std::string_view spec = "auto";  ///< one of law_words, RATE as engine/base/rate_text.hpp reads it
  std::string_view target = "under";  ///< "under", "mid" or "zero": where safe-range sets the rate
  std::string_view bounds = "measured";  ///< "measured" or "strict": likewise
  bool has_qcut = false;
  bool is_repair_lazy = false;  ///< [FWP]: loss on the air is hidden from the law
  LawParams params{};           ///< safe_range's target and bounds are overwritten
};

/// make_law fails with ExitCode::usage and names what would be legal.
[[nodiscard]] Result<std::unique_ptr<Controller>> make_law(const LawOptions& options);

}  // namespace onehop::law
