// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/make_law.hpp"

#include <fmt/format.h>

#include <string>

#include "control/law/fixed.hpp"
#include "engine/base/rate_text.hpp"

namespace onehop::law {

namespace {
Error usage(std::string_view option, std::string_view value, std::string hint) {
  return {.code = ExitCode::usage, .attempt = fmt::format("read {}", option), .cause = fmt::format("'{}' is not known", value),
          .hint = std::move(hint)};
}
}  // namespace

Result<std::unique_ptr<Controller>> make_law(const LawOptions& options) {
  constexpr std::string_view fixed = "fixed:";
  if (options.spec.starts_with(fixed)) {
    ONEHOP_TRY(rate, parse_rate(options.spec.substr(fixed.size())));
    return std::unique_ptr<Controller>{std::make_unique<Fixed>(FixedParams{.rate = rate})};
  }
  if (options.spec != "safe-range") return usage("--law", options.spec, "Known laws: safe-range, fixed:RATE.");
  SafeRangeParams params = options.params;
  if (options.target == "under") params.target = Target::under;
  else if (options.target == "mid") params.target = Target::mid;
  else if (options.target == "zero") params.target = Target::zero;
  else return usage("--target", options.target, "Known targets: under, mid, zero.");
  if (options.bounds == "measured") params.bounds = Bounds::measured;
  else if (options.bounds == "strict") params.bounds = Bounds::strict;
  else return usage("--bounds", options.bounds, "Known bounds: measured, strict.");
  return std::unique_ptr<Controller>{std::make_unique<SafeRange>(params)};
}

}  // namespace onehop::law
