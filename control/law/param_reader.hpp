// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ParamReader: values of a law's parameters out of one JSON object (configs/law has the files).
//
// Each law's parameters have `void read(ParamReader&)`, which names every key with its limits. A
// key that is absent leaves its value alone. The reader remembers the known keys and the first
// fault. Setup code, any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop::law {

/// join puts ", " between words.
template <class Words>
[[nodiscard]] std::string join(const Words& words) {
  std::string all;
  for (const auto& word : words) all.append(all.empty() ? "" : ", ").append(word);
  return all;
}

class ParamReader {
 public:
  /// `object` must outlive the reader. `where` is the file's name, for messages.
  ParamReader(const nlohmann::json& object, std::string_view where)
      : object_{object}, where_{where} {}

  void gain(const char* key, Gain& out, double least, double most);
  void gains(const char* key, Gain& low, Gain& high, double least, double most);
  void ms(const char* key, Nanos& out, double least, double most);
  void ms_pair(const char* key, Nanos& low, Nanos& high, double least, double most);
  /// rate reads bits per second. Returns whether the key was there.
  bool rate(const char* key, BytesPerSecond& out);
  void bytes(const char* key, Bytes& out);
  template <class Integer>
  void count(const char* key, Integer& out, double least, double most) {
    if (const auto v = whole_number(key, least, most)) out = static_cast<Integer>(*v);
  }
  /// require is a rule between two keys.
  void require(bool holds, const char* key, const char* rule) {
    if (!holds) refuse(key, rule);
  }
  /// finish fails with ExitCode::usage on the first fault, and on an unknown key.
  [[nodiscard]] Result<void> finish();

 private:
  const nlohmann::json* find(const char* key);
  std::optional<double> number(const char* key, double least, double most);
  std::optional<std::int64_t> whole_number(const char* key, double least, double most);
  std::optional<std::pair<double, double>> pair(const char* key, double least, double most);
  std::optional<double> within(const char* key, const nlohmann::json& value, double least,
                               double most);
  void refuse(const std::string& key, std::string cause,
              std::string hint = "configs/law has examples.");

  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string> known_{"law"};
  std::optional<Error> fault_;
};

}  // namespace onehop::law
