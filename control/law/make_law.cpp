// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "control/law/make_law.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "control/law/auto_law.hpp"
#include "control/law/cupid.hpp"
#include "control/law/fixed.hpp"
#include "control/law/param_reader.hpp"
#include "control/law/qcut.hpp"
#include "control/law/safe_range.hpp"
#include "control/law/term/loss_mask.hpp"
#include "control/law/wdtcp.hpp"
#include "engine/base/rate_text.hpp"

namespace onehop::law {

namespace {
using nlohmann::json;
using Made = std::unique_ptr<Controller>;

/// Recipe: what a law is made of.
struct Recipe {
  const LawParams& file;
  SafeRangeParams safe_range;
  std::string_view argument;  ///< what follows the word's colon

  /// own gives a law's parameters: its defaults, or what the file says if it is for `law`.
  template <class Params>
  [[nodiscard]] Params own(std::string_view law) const {
    Params params;
    if (file.law != law) return params;
    const json object = json::parse(file.json);
    ParamReader reader{object, file.where};
    params.read(reader);
    return params;
  }
};

Result<Made> make_auto(const Recipe& recipe) {
  AutoParams params = recipe.own<AutoParams>("auto");
  params.safe_range = recipe.safe_range;
  return Made{std::make_unique<CupidCap>(std::make_unique<AutoLaw>(params),
                                         recipe.own<AirtimeShareParams>("cupid"))};
}
Result<Made> make_safe_range(const Recipe& recipe) {
  return Made{std::make_unique<SafeRange>(recipe.safe_range)};
}
template <WdtcpParams::Form form>
Result<Made> make_wdtcp(const Recipe& recipe) {
  WdtcpParams params = recipe.own<WdtcpParams>("wdtcp");
  params.safe_range = recipe.safe_range;
  params.form = form;
  return Made{std::make_unique<Wdtcp>(params)};
}
Result<Made> make_cupid(const Recipe& recipe) {
  return Made{std::make_unique<Cupid>(recipe.own<AirtimeShareParams>("cupid"), recipe.safe_range)};
}
Result<Made> make_fixed(const Recipe& recipe) {
  ONEHOP_TRY(rate, parse_rate(recipe.argument));
  return Made{std::make_unique<Fixed>(rate)};
}

template <class Params>
void check(ParamReader& reader) {
  Params{}.read(reader);
}

/// Entry: one law. A parameter file is for one law, and other laws may read it as well.
struct Entry {
  std::string_view word;   ///< of --law; what follows a colon in capitals is an argument
  std::string_view files;  ///< the parameter files that it reads, by their laws
  Result<Made> (*make)(const Recipe&);
  void (*check)(ParamReader&);  ///< of the file with its own name; null: there is none
};
constexpr Entry entries[] = {
    {"auto", "auto cupid safe-range", make_auto, check<AutoParams>},
    {"safe-range", "safe-range", make_safe_range, check<SafeRangeParams>},
    {"wdtcp", "wdtcp safe-range", make_wdtcp<WdtcpParams::Form::offset>, check<WdtcpParams>},
    {"wdtcp:paper", "wdtcp safe-range", make_wdtcp<WdtcpParams::Form::paper>, nullptr},
    {"cupid", "cupid safe-range", make_cupid, check<AirtimeShareParams>},
    {"fixed:RATE", "", make_fixed, nullptr},
};
constexpr std::string_view qcut = "qcut";  // derived: a wrapper has parameters, and no word

/// prefix_of is the part of a word before its argument; empty where it has none.
std::string_view prefix_of(const Entry& entry) {
  return entry.word.ends_with(":RATE") ? entry.word.substr(0, entry.word.find(':') + 1) : "";
}

const Entry* find_entry(std::string_view spec) {
  const auto* found = std::find_if(std::begin(entries), std::end(entries), [&](const Entry& e) {
    const std::string_view prefix = prefix_of(e);
    return prefix.empty() ? spec == e.word : spec.starts_with(prefix);
  });
  return found == std::end(entries) ? nullptr : found;
}

Error unknown(std::string_view option, std::string_view value, std::string hint) {
  return {.code = ExitCode::usage,
          .attempt = fmt::format("read {}", option),
          .cause = fmt::format("'{}' is not known", value),
          .hint = std::move(hint)};
}

Result<SafeRangeParams> safe_range_params(const LawOptions& options) {
  SafeRangeParams params = options.params.safe_range;
  if (options.target == "under")
    params.target = Target::under;
  else if (options.target == "mid")
    params.target = Target::mid;
  else if (options.target == "zero")
    params.target = Target::zero;
  else
    return unknown("--target", options.target, "Known targets: under, mid, zero.");
  if (options.bounds == "measured")
    params.bounds = Bounds::measured;
  else if (options.bounds == "strict")
    params.bounds = Bounds::strict;
  else
    return unknown("--bounds", options.bounds, "Known bounds: measured, strict.");
  return params;
}
}  // namespace

std::string law_words() {
  std::vector<std::string_view> words;
  for (const Entry& entry : entries) words.push_back(entry.word);
  return join(words);
}

std::vector<std::string_view> param_files() {
  std::vector<std::string_view> names;
  for (const Entry& entry : entries)
    if (entry.check != nullptr) names.push_back(entry.word);
  names.push_back(qcut);
  return names;
}

bool uses_params(std::string_view spec, bool has_qcut, std::string_view name) {
  if (name == qcut) return has_qcut;
  const Entry* entry = find_entry(spec);
  return entry != nullptr &&
         fmt::format(" {} ", entry->files).find(fmt::format(" {} ", name)) != std::string::npos;
}

bool has_start_rate(std::string_view spec) { return uses_params(spec, false, "safe-range"); }

Result<std::string> read_params(std::string_view text, std::string_view where, LawParams& params) {
  const json object = json::parse(text, nullptr, false);
  const auto refuse = [&](std::string cause) {
    return Error{.code = ExitCode::usage,
                 .attempt = fmt::format("read law parameters from {}", where),
                 .cause = std::move(cause),
                 .hint = "configs/law has examples."};
  };
  if (!object.is_object()) return refuse("it is not a JSON object");
  const auto law = object.find("law");
  if (law == object.end() || !law->is_string()) return refuse("the key \"law\" is missing");
  const auto name = law->get<std::string>();
  ParamReader reader{object, where};
  LawParams read{params.safe_range, name, std::string{text}, std::string{where}};
  const Entry* entry = find_entry(name);
  if (name == "safe-range")
    read.safe_range.read(reader);
  else if (name == qcut)
    check<QcutParams>(reader);
  else if (entry != nullptr && entry->check != nullptr)
    entry->check(reader);
  else
    return refuse(
        fmt::format("'{}' has no parameters; laws that have: {}", name, join(param_files())));
  ONEHOP_TRYV(reader.finish());
  params = std::move(read);
  return name;
}

Result<std::unique_ptr<Controller>> make_law(const LawOptions& options) {
  ONEHOP_TRY(safe_range, safe_range_params(options));
  const Entry* entry = find_entry(options.spec);
  if (entry == nullptr)
    return unknown("--law", options.spec, fmt::format("Known laws: {}.", law_words()));
  const Recipe recipe{options.params, safe_range, options.spec.substr(prefix_of(*entry).size())};
  ONEHOP_TRY(law, entry->make(recipe));
  if (options.is_repair_lazy && options.spec != "auto")
    law = std::make_unique<LossMask>(std::move(law), safe_range.rate_min);
  if (options.has_qcut) {
    auto params = recipe.own<QcutParams>(qcut);
    params.rate_max = safe_range.rate_max;
    law = std::make_unique<Qcut>(std::move(law), params);
  }
  return std::move(law);
}

}  // namespace onehop::law
