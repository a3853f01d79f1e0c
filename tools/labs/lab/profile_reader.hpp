// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// ProfileReader: one table of a profile, read strictly. Each key has a type and bounds, and what is
// unknown is refused: a slip of the pen would otherwise be a profile that silently does less.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop::lab {

class ProfileReader {
 public:
  /// `where` names the table for errors: "the profile X", "[wifi] of X". `table` must outlive the
  /// reader.
  ProfileReader(const toml::table& table, std::string where)
      : table_{table}, where_{std::move(where)} {}

  [[nodiscard]] Result<void> unknown_keys(const std::set<std::string_view>& known) const;
  [[nodiscard]] Error refuse(const std::string& key, const std::string& cause) const;
  [[nodiscard]] bool has(std::string_view key) const { return table_.contains(key); }
  [[nodiscard]] const toml::table& table() const { return table_; }

  [[nodiscard]] Result<std::string> text(std::string_view key, std::string otherwise) const;
  [[nodiscard]] Result<bool> flag(std::string_view key) const;
  [[nodiscard]] Result<double> number(std::string_view key, double otherwise, double min,
                                      double max) const;
  /// whole is a number without a fraction.
  [[nodiscard]] Result<std::int64_t> whole(std::string_view key, std::int64_t otherwise,
                                           std::int64_t min, std::int64_t max) const;
  [[nodiscard]] Result<BytesPerSecond> rate(std::string_view key) const;
  [[nodiscard]] Result<Bytes> size(std::string_view key, Bytes otherwise) const;
  [[nodiscard]] Result<std::vector<std::string>> texts(std::string_view key) const;

 private:
  const toml::table& table_;
  std::string where_;
};

}  // namespace onehop::lab
