// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/profile_reader.hpp"

#include <fmt/format.h>

#include <charconv>

#include "engine/base/rate_text.hpp"

namespace onehop::lab {

Result<void> ProfileReader::unknown_keys(const std::set<std::string_view>& known) const {
  for (const auto& [key, value] : table_) {
    if (!known.contains(key.str())) return refuse(std::string{key.str()}, "no such key here");
  }
  return success();
}

Error ProfileReader::refuse(const std::string& key, const std::string& cause) const {
  return {ExitCode::usage, fmt::format("read {} of {}", key, where_), cause,
          "configs/lab has examples"};
}

Result<std::string> ProfileReader::text(std::string_view key, std::string otherwise) const {
  if (!has(key)) return otherwise;
  const auto value = table_[key].value_exact<std::string>();
  if (!value) return refuse(std::string{key}, "it must be a text in quotes");
  return *value;
}

Result<bool> ProfileReader::flag(std::string_view key) const {
  if (!has(key)) return false;
  const auto value = table_[key].value_exact<bool>();
  if (!value) return refuse(std::string{key}, "it must be true or false");
  return *value;
}

Result<double> ProfileReader::number(std::string_view key, double otherwise, double min,
                                     double max) const {
  if (!has(key)) return otherwise;
  const auto value = table_[key].value<double>();
  if (!value || !(*value >= min && *value <= max))
    return refuse(std::string{key}, fmt::format("it must be a number from {} to {}", min, max));
  return *value;
}

Result<std::int64_t> ProfileReader::whole(std::string_view key, std::int64_t otherwise,
                                          std::int64_t min, std::int64_t max) const {
  if (!has(key)) return otherwise;
  const auto value = table_[key].value_exact<std::int64_t>();
  if (!value || *value < min || *value > max)
    return refuse(std::string{key},
                  fmt::format("it must be a whole number from {} to {}", min, max));
  return *value;
}

Result<BytesPerSecond> ProfileReader::rate(std::string_view key) const {
  ONEHOP_TRY(given, text(key, ""));
  ONEHOP_TRY(parsed, parse_rate(given));
  return parsed;
}

Result<Bytes> ProfileReader::size(std::string_view key, Bytes otherwise) const {
  if (!has(key)) return otherwise;
  ONEHOP_TRY(given, text(key, ""));
  double value = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
  const std::string_view unit{end, static_cast<std::size_t>(given.data() + given.size() - end)};
  const double factor = unit == "B"                    ? 1
                        : unit == "KB" || unit == "kB" ? 1e3
                        : unit == "MB"                 ? 1e6
                                                       : 0;
  const double bytes = value * factor;
  if (error != std::errc{} || !(bytes >= 2000 && bytes <= 1e9))
    return refuse(std::string{key}, "it must be a size from 2KB to 1000MB, like \"256KB\"");
  return Bytes{static_cast<std::int64_t>(bytes)};
}

Result<std::vector<std::string>> ProfileReader::texts(std::string_view key) const {
  std::vector<std::string> out;
  if (!has(key)) return out;
  const toml::array* const array = table_[key].as_array();
  if (array == nullptr) return refuse(std::string{key}, "it must be a list of texts");
  for (const toml::node& node : *array) {
    const auto value = node.value_exact<std::string>();
    if (!value) return refuse(std::string{key}, "it must be a list of texts");
    out.push_back(*value);
  }
  return out;
}

}  // namespace onehop::lab
