// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/text/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/rate_text.hpp"

namespace onehop::tool {

std::string format_bytes(std::uint64_t bytes) {
  return amount_text(static_cast<double>(bytes), "B");
}

std::string format_rate(BytesPerSecond rate) {
  return amount_text(static_cast<double>(bps(rate)), "bit/s");
}

std::string files_text(std::uint64_t done, std::uint64_t total, bool is_all) {
  const auto count = [](std::uint64_t files) {
    std::string text =
        files < 100'000 ? std::to_string(files) : amount_text(static_cast<double>(files), "");
    std::erase(text, ' ');
    return text;
  };
  return count(done) + "/" + count(total) + (is_all ? " files" : "+ files");
}

std::string format_span(double seconds) {
  constexpr double seconds_max = 1e12;  // more is a forecast of nothing
  const auto whole = static_cast<long>(std::clamp(std::round(seconds), 0.0, seconds_max));
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace onehop::tool
