// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/param_reader.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace onehop::law {

using nlohmann::json;

void ParamReader::gain(const char* key, Gain& out, double least, double most) {
  if (const auto v = number(key, least, most)) out = {std::llround(*v * 1000.0)};
}
void ParamReader::gains(const char* key, Gain& low, Gain& high, double least, double most) {
  if (const auto v = pair(key, least, most))
    low = {std::llround(v->first * 1000.0)}, high = {std::llround(v->second * 1000.0)};
}
void ParamReader::ms(const char* key, Nanos& out, double least, double most) {
  if (const auto v = number(key, least, most)) out = Nanos{std::llround(*v * 1e6)};
}
void ParamReader::ms_pair(const char* key, Nanos& low, Nanos& high, double least, double most) {
  if (const auto v = pair(key, least, most))
    low = Nanos{std::llround(v->first * 1e6)}, high = Nanos{std::llround(v->second * 1e6)};
}
bool ParamReader::rate(const char* key, BytesPerSecond& out) {
  const auto v = number(key, 8e3, 1e12);
  if (v) out = bit_per_s(std::llround(*v));
  return v.has_value();
}
void ParamReader::bytes(const char* key, Bytes& out) {
  if (const auto v = number(key, 1'500, 64.0 * 1024 * 1024)) out = {std::llround(*v)};
}

Result<void> ParamReader::finish() {
  for (const auto& [key, value] : object_.items()) {
    if (known_.contains(key)) continue;
    refuse(key, "no such key here", "Known keys: " + join(known_) + ".");
  }
  if (fault_) return *std::move(fault_);
  return success();
}

const json* ParamReader::find(const char* key) {
  known_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

std::optional<double> ParamReader::number(const char* key, double least, double most) {
  const json* found = find(key);
  return found != nullptr ? within(key, *found, least, most) : std::nullopt;
}

std::optional<std::int64_t> ParamReader::whole_number(const char* key, double least, double most) {
  const auto v = number(key, least, most);
  if (!v) return std::nullopt;
  if (*v != std::floor(*v)) return refuse(key, "it must be a whole number"), std::nullopt;
  return std::llround(*v);
}

std::optional<std::pair<double, double>> ParamReader::pair(const char* key, double least,
                                                           double most) {
  const json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_array() || found->size() != 2)
    return refuse(key, "it must be [lowest, highest]"), std::nullopt;
  const auto low = within(key, (*found)[0], least, most);
  const auto high = within(key, (*found)[1], least, most);
  if (!low || !high) return std::nullopt;
  if (*low > *high) return refuse(key, "the lowest is above the highest"), std::nullopt;
  return std::pair{*low, *high};
}

std::optional<double> ParamReader::within(const char* key, const json& value, double least,
                                          double most) {
  if (!value.is_number()) return refuse(key, "it must be a number"), std::nullopt;
  const double v = value.get<double>();
  if (v >= least && v <= most) return v;
  return refuse(key, fmt::format("{} is not within {} .. {}", v, least, most)), std::nullopt;
}

void ParamReader::refuse(const std::string& key, std::string cause, std::string hint) {
  if (fault_) return;
  fault_ = Error{.code = ExitCode::usage,
                 .attempt = fmt::format("read '{}' of {}", key, where_),
                 .cause = std::move(cause),
                 .hint = std::move(hint)};
}

}  // namespace onehop::law
