// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/quantity.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace onehop::tool {

namespace {

struct Prefix {
  char letter;
  double factor;
};
constexpr std::array<Prefix, 4> prefixes{{{'k', 1e3}, {'M', 1e6}, {'G', 1e9}, {'T', 1e12}}};

std::string scaled(double value, std::string_view unit) {
  std::size_t step = 0;
  constexpr std::array<std::string_view, 5> names{"", "k", "M", "G", "T"};
  while (value >= 999.5 && step + 1 < names.size()) value /= 1000, ++step;
  const int digits = step == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", value, digits, names[step], unit);
}

}  // namespace

Result<BytesPerSecond> parse_rate(std::string_view text) {
  const auto refuse = [&](std::string cause) {
    return Error{ExitCode::usage, fmt::format("read the rate '{}'", text), std::move(cause),
                 "Write it like 600Mbit, 1.5Gbit or 250000000 (bits per second)"};
  };
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value <= 0) return refuse("it does not start with a positive number");
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (!rest.empty()) {
    for (const Prefix& prefix : prefixes) {
      if (rest.front() != prefix.letter && !(prefix.letter == 'k' && rest.front() == 'K')) continue;
      value *= prefix.factor;
      rest.remove_prefix(1);
      break;
    }
  }
  if (!rest.empty() && rest != "bit" && rest != "bit/s" && rest != "bps") return refuse("its unit is unknown");
  if (value < 8000 || value > 1e12) return refuse("it is outside 8 kbit/s .. 1 Tbit/s");
  return bit_per_s(static_cast<std::int64_t>(value));
}

std::string format_bytes(std::uint64_t bytes) { return scaled(static_cast<double>(bytes), "B"); }

std::string format_rate(BytesPerSecond rate) { return scaled(static_cast<double>(bps(rate)), "bit/s"); }

std::string format_span(double seconds) {
  const auto whole = static_cast<long>(std::max(0.0, std::round(seconds)));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace onehop::tool
