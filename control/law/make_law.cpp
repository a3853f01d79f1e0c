// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/make_law.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "control/law/fixed.hpp"

namespace onehop::law {

namespace {
Error usage(std::string_view option, std::string_view value, std::string hint) {
  return {.code = ExitCode::usage, .attempt = fmt::format("read {}", option), .cause = fmt::format("'{}' is not known", value),
          .hint = std::move(hint)};
}
}  // namespace

Result<BytesPerSecond> parse_rate(std::string_view text) {
  constexpr double rate_bps_min = 8'000.0, rate_bps_max = 1e12;
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  const std::string_view unit{rest, static_cast<std::size_t>(text.data() + text.size() - rest)};
  double factor = 0;
  if (unit.empty()) factor = 1;
  if (unit == "k" || unit == "K") factor = 1e3;
  if (unit == "m" || unit == "M") factor = 1e6;
  if (unit == "g" || unit == "G") factor = 1e9;
  const double rate_bps = value * factor;
  // Written so that NaN fails as well.
  if (error != std::errc{} || !(rate_bps >= rate_bps_min && rate_bps <= rate_bps_max))
    return usage("a rate", text, "Give bits per second, 8k to 1000G, such as 600M or 1.5G.");
  return bit_per_s(static_cast<std::int64_t>(rate_bps));
}

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
