// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// LawParams: the parameters of all laws, and their form in a file (configs/law). Setup code, any thread; the file itself is
// read by the caller.
#pragma once

#include <string>
#include <string_view>

#include "control/law/auto_law.hpp"
#include "control/law/cupid.hpp"
#include "control/law/qcut.hpp"
#include "control/law/safe_range.hpp"
#include "control/law/wdtcp.hpp"
#include "engine/base/result.hpp"

namespace onehop::law {

/// LawParams: safe_range is the one set that every law falls back to; make_law copies it into the others.
struct LawParams {
  SafeRangeParams safe_range;
  WdtcpParams wdtcp;
  AirtimeShareParams share;
  QcutParams qcut;
  AutoParams auto_law;
  [[nodiscard]] bool operator==(const LawParams&) const = default;
};

/// read_params reads one JSON object into the law that its key "law" names; keys that are absent keep their values.
/// `where` is for messages; the law's name is returned. It fails with ExitCode::usage on an unknown key, a wrong type or a value out of range, and
/// then `params` is as it was.
[[nodiscard]] Result<std::string> read_params(std::string_view json, std::string_view where, LawParams& params);

/// uses_params: a law made from `spec` (and --qcut) reads the parameters of the law `name`. safe-range's count for all
/// that fall back to it.
[[nodiscard]] bool uses_params(std::string_view spec, bool has_qcut, std::string_view name) noexcept;

/// has_start_rate: the law begins at safe-range's rate_start, which a former run may know better.
[[nodiscard]] bool has_start_rate(std::string_view spec) noexcept;

}  // namespace onehop::law
