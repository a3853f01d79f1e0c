// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The program's help: CLI11's, within 80 columns. Owns nothing; the main thread calls it.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace onehop::tool {

/// Help writes an option's values as "udp|afxdp" or "1..10", and its default among the words that
/// explain it.
class Help final : public CLI::Formatter {
 public:
  Help();
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name,
                                      CLI::AppFormatMode mode) const override;
  [[nodiscard]] std::string make_group(std::string group, bool is_positional,
                                       std::vector<const CLI::Option*> options) const override;
  [[nodiscard]] std::string make_description(const CLI::App* app) const override;
  [[nodiscard]] std::string make_usage(const CLI::App* app, std::string name) const override;
  [[nodiscard]] std::string make_subcommand(const CLI::App* command) const override;
  [[nodiscard]] std::string make_option(const CLI::Option* option,
                                        bool is_positional) const override;
  [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override;
  [[nodiscard]] std::string make_option_desc(const CLI::Option* option) const override;

 private:
  // Of the page that is being made: without options for experiments
  mutable bool is_short_ = false;
};

/// A terminal of 80 may begin a new line behind its last column
inline constexpr std::size_t columns_max = 79;

/// wrap breaks `text` at its spaces, so that no line has more than `columns`; a longer word stays
/// whole. Lines after the first begin with `indent` spaces, which count; of the first so many
/// columns are `used`.
[[nodiscard]] std::string wrap(const std::string& text, std::size_t columns, std::size_t indent = 0,
                               std::size_t used = 0);

/// values_of is what an option takes: "auto|udp", "0..3600", or the name of its type.
[[nodiscard]] std::string values_of(const CLI::Option& option);

}  // namespace onehop::tool
