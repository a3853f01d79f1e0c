// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/make_law.hpp"

#include <fmt/format.h>

#include <string>

#include "control/law/fixed.hpp"
#include "control/law/loss_mask.hpp"
#include "engine/base/rate_text.hpp"

namespace onehop::law {

namespace {
Error usage(std::string_view option, std::string_view value, std::string hint) {
  return {.code = ExitCode::usage, .attempt = fmt::format("read {}", option), .cause = fmt::format("'{}' is not known", value),
          .hint = std::move(hint)};
}

Result<SafeRangeParams> safe_range_params(const LawOptions& options) {
  SafeRangeParams params = options.params.safe_range;
  if (options.target == "under") params.target = Target::under;
  else if (options.target == "mid") params.target = Target::mid;
  else if (options.target == "zero") params.target = Target::zero;
  else return usage("--target", options.target, "Known targets: under, mid, zero.");
  if (options.bounds == "measured") params.bounds = Bounds::measured;
  else if (options.bounds == "strict") params.bounds = Bounds::strict;
  else return usage("--bounds", options.bounds, "Known bounds: measured, strict.");
  return params;
}

Result<std::unique_ptr<Controller>> make_bare_law(const LawOptions& options) {
  using Made = std::unique_ptr<Controller>;
  constexpr std::string_view fixed = "fixed:";
  ONEHOP_TRY(safe_range, safe_range_params(options));
  LawParams params = options.params;
  if (options.spec.starts_with(fixed)) {
    ONEHOP_TRY(rate, parse_rate(options.spec.substr(fixed.size())));
    return Made{std::make_unique<Fixed>(FixedParams{.rate = rate})};
  }
  if (options.spec == "safe-range") return Made{std::make_unique<SafeRange>(safe_range)};
  if (options.spec == "auto") {
    params.auto_law.safe_range = safe_range;
    return Made{std::make_unique<CupidCap>(std::make_unique<AutoLaw>(params.auto_law), params.share)};
  }
  if (options.spec == "wdtcp" || options.spec == "wdtcp:paper") {
    params.wdtcp.safe_range = safe_range;
    params.wdtcp.form = options.spec == "wdtcp" ? WdtcpParams::Form::offset : WdtcpParams::Form::paper;
    return Made{std::make_unique<Wdtcp>(params.wdtcp)};
  }
  if (options.spec == "cupid")
    return Made{std::make_unique<Cupid>(CupidParams{.share = params.share, .safe_range = safe_range})};
  return usage("--law", options.spec, fmt::format("Known laws: {}.", law_words));
}
}  // namespace

Result<std::unique_ptr<Controller>> make_law(const LawOptions& options) {
  ONEHOP_TRY(law, make_bare_law(options));
  if (options.is_repair_lazy && options.spec != "auto") law = std::make_unique<LossMask>(std::move(law), options.params.safe_range.rate_min);
  if (options.has_qcut) {
    QcutParams params = options.params.qcut;
    params.rate_max = options.params.safe_range.rate_max;
    return std::unique_ptr<Controller>{std::make_unique<Qcut>(std::move(law), params)};
  }
  return std::move(law);
}

}  // namespace onehop::law
