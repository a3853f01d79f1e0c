// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "engine/base/rate_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace onehop {

namespace {

constexpr double rate_bps_min = 8e3, rate_bps_max = 1e12;

double factor_of(char prefix) noexcept {
  constexpr std::array factors{1e3, 1e6, 1e9, 1e12, 0.0};
  return factors[std::min(std::string_view{"kKmMgGtT"}.find(prefix) / 2, factors.size() - 1)];
}

}  // namespace

Result<BytesPerSecond> parse_rate(std::string_view text) {
  const auto refuse = [&](std::string cause) {
    return Error{ExitCode::usage, fmt::format("read the rate '{}'", text), std::move(cause),
                 "Write it like 600Mbit, 75MB/s, 1.5Gbit or 250000000 (bits per second)"};
  };
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  // Written so that NaN fails as well.
  if (error != std::errc{} || !(value > 0))
    return refuse("it does not start with a positive number");
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (!unit.empty() && factor_of(unit.front()) > 0) {
    value *= factor_of(unit.front());
    unit.remove_prefix(1);
  }
  // A capital B is a byte, as everywhere; B without /s would be an amount.
  if (unit == "B/s" || unit == "Bps")
    value *= 8;
  else if (!unit.empty() && unit != "bit" && unit != "bit/s" && unit != "bps")
    return refuse("its unit is unknown");
  if (!(value >= rate_bps_min && value <= rate_bps_max))
    return refuse("it is outside 8 kbit/s .. 1 Tbit/s");
  return bit_per_s(static_cast<std::int64_t>(value));
}

std::string amount_text(double value, std::string_view unit) {
  std::size_t step = 0;
  constexpr std::array<std::string_view, 5> names{"", "k", "M", "G", "T"};
  while (value >= 999.5 && step + 1 < names.size()) value /= 1000, ++step;
  const int digits = step == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", value, digits, names[step], unit);
}

}  // namespace onehop
