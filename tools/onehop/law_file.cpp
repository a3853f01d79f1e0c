// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/law_file.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

namespace onehop::tool {

namespace {

using Json = nlohmann::json;
using law::SafeRangeParams;

/// Key: one parameter. `count` numbers, each within min and max, the first not above the last.
struct Key {
  std::string_view name;
  std::size_t count;
  double min, max;
  void (*set)(SafeRangeParams&, const std::array<double, 2>&);
};

Nanos ms(double value) { return Nanos{static_cast<Nanos::rep>(value * 1e6)}; }
Gain gain(double value) { return Gain{static_cast<decltype(Gain::permille)>(value * 1000 + 0.5)}; }
BytesPerSecond rate(double value_bps) { return bit_per_s(static_cast<std::int64_t>(value_bps)); }

constexpr double rate_bps_min = 8e3, rate_bps_max = 1e12;
constexpr std::array keys{
    Key{"d_1_ms", 1, 0.5, 100, [](SafeRangeParams& p, const auto& v) { p.d_1 = ms(v[0]); }},
    Key{"v_1_bounds", 2, 0, 10, [](SafeRangeParams& p, const auto& v) { p.v_1_lo = gain(v[0]), p.v_1_up = gain(v[1]); }},
    Key{"v_rx_bounds", 2, 0, 10, [](SafeRangeParams& p, const auto& v) { p.v_rx_lo = gain(v[0]), p.v_rx_up = gain(v[1]); }},
    Key{"d_rx_min_ms", 1, 0.1, 1000, [](SafeRangeParams& p, const auto& v) { p.d_rx_min = ms(v[0]); }},
    Key{"latch_min_ms", 1, 0, 10'000, [](SafeRangeParams& p, const auto& v) { p.latch_min = ms(v[0]); }},
    Key{"rate_start_bps", 1, rate_bps_min, rate_bps_max,
        [](SafeRangeParams& p, const auto& v) { p.rate_start = rate(v[0]), p.is_start_known = true; }},
    Key{"rate_min_bps", 1, rate_bps_min, rate_bps_max, [](SafeRangeParams& p, const auto& v) { p.rate_min = rate(v[0]); }},
    Key{"rate_max_bps", 1, rate_bps_min, rate_bps_max, [](SafeRangeParams& p, const auto& v) { p.rate_max = rate(v[0]); }},
    Key{"backlog_start_bytes", 1, 3000, 64 << 20,
        [](SafeRangeParams& p, const auto& v) { p.backlog_start = {static_cast<std::int64_t>(v[0])}; }},
    Key{"batch_frames_max", 1, 2, 64,
        [](SafeRangeParams& p, const auto& v) { p.batch_frames_max = static_cast<std::uint32_t>(v[0]); }},
};

/// numbers_of gives the key's numbers, or nothing where the value is something else.
std::optional<std::array<double, 2>> numbers_of(const Key& key, const Json& value) {
  if (key.count == 1 ? !value.is_number() : !value.is_array() || value.size() != key.count) return std::nullopt;
  std::array<double, 2> numbers{};
  for (std::size_t i = 0; i < key.count; ++i) {
    const Json& one = key.count == 1 ? value : value[i];
    if (!one.is_number()) return std::nullopt;
    numbers[i] = one.get<double>();
    if (!(numbers[i] >= key.min && numbers[i] <= key.max)) return std::nullopt;
  }
  if (key.count == 2 && !(numbers[0] <= 1 && numbers[1] >= 1)) return std::nullopt;
  return numbers;
}

std::string bounds_of(const Key& key) {
  if (key.count == 1) return fmt::format("Give a number from {:.12g} to {:.12g}", key.min, key.max);
  return fmt::format("Give two numbers, [LOWER, UPPER], from {:.12g} to 1 and from 1 to {:.12g}", key.min, key.max);
}

std::string known_keys() {
  std::string names = "law";
  for (const Key& key : keys) names.append(", ").append(key.name);
  return names;
}

}  // namespace

Result<SafeRangeParams> parse_law_params(std::string_view text, const std::string& name) {
  const auto refuse = [&](std::string cause, std::string hint) {
    return Error{ExitCode::usage, "read the law parameters in " + name, std::move(cause), std::move(hint)};
  };
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) return refuse("it is not a JSON object", "See configs/law/safe-range.json");
  if (document.value("law", Json{}) != "safe-range")
    return refuse("it does not say which law it is for", R"(Write "law": "safe-range"; no other law has parameters)");
  SafeRangeParams params;
  for (const auto& [word, value] : document.items()) {
    if (word == "law") continue;
    const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key& one) { return one.name == word; });
    if (key == keys.end()) return refuse(fmt::format("'{}' is not a parameter of safe-range", word), "Known: " + known_keys());
    const auto numbers = numbers_of(*key, value);
    if (!numbers) return refuse(fmt::format("'{}' cannot be {}", word, value.dump()), bounds_of(*key));
    key->set(params, *numbers);
  }
  if (params.rate_min > params.rate_start || params.rate_start > params.rate_max)
    return refuse("rate_min_bps, rate_start_bps and rate_max_bps do not ascend", "Leave out what need not be changed");
  return params;
}

}  // namespace onehop::tool
