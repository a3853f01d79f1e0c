// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/text/help.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

namespace onehop::tool {

namespace {

// Of an option and its values: wider leaves no room for words, narrower breaks more lines
constexpr std::size_t left_columns = 28;
constexpr std::size_t left_indent = 2;  // the library's, before each entry
constexpr std::size_t more_indent = 6;  // of what does not fit beside it on the left

std::string entry(const std::string& left, const std::string& right) {
  std::ostringstream out;
  CLI::detail::format_help(out, wrap(left, columns_max - left_indent, more_indent),
                           wrap(right, columns_max - left_columns), left_columns);
  return out.str();
}

/// Options that a paper's experiment needs, or a laboratory, and nobody who sends files.
bool is_for_experiments(const CLI::Option* option) {
  static constexpr std::array<std::string_view, 9> names{
      "--bounds",    "--target", "--key-interval", "--link-model", "--fragment",
      "--mac-noack", "--eal",    "--file-io",      "--direct-io"};
  return std::ranges::find(names, option->get_name()) != names.end();
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::ranges::sort(names);  // the set is in the order of addresses
  return CLI::detail::join(names, ", ");
}

}  // namespace

std::string wrap(const std::string& text, std::size_t columns, std::size_t indent,
                 std::size_t used) {
  std::istringstream words{text};
  std::string out;
  for (std::string word; words >> word; used += word.size()) {
    if (!out.empty()) {
      const bool has_room = used + 1 + word.size() <= columns;
      out += has_room ? " " : "\n" + std::string(indent, ' ');
      used = has_room ? used + 1 : indent;
    }
    out += word;
  }
  return out;
}

// The library writes a type, a colon, and what the check says of itself: "TEXT:{auto,udp}",
// "FLOAT:FLOAT in [0 - 3600]".
std::string values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (const std::size_t set = type.find(":{"); set != std::string::npos) {
    std::string values = type.substr(set + 2, type.find('}', set) - set - 2);
    std::ranges::replace(values, ',', '|');
    return values;
  }
  if (const std::size_t range = type.find(" in ["); range != std::string::npos) {
    const std::string values = type.substr(range + 5, type.find(']', range) - range - 5);
    return CLI::detail::find_and_replace(values, " - ", "..");
  }
  return type;
}

Help::Help() { column_width(left_columns); }

std::string Help::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  const std::string& command = app->get_name();
  is_short_ = mode != CLI::AppFormatMode::All && (command == "send" || command == "recv");
  // Of all commands at once nobody reads the options.
  if (mode == CLI::AppFormatMode::All) mode = CLI::AppFormatMode::Normal;
  // The library puts one empty line after a group and another before the next.
  return CLI::detail::find_and_replace(CLI::Formatter::make_help(app, std::move(name), mode),
                                       "\n\n\n", "\n\n");
}

std::string Help::make_group(std::string group, bool is_positional,
                             std::vector<const CLI::Option*> options) const {
  if (is_short_) std::erase_if(options, is_for_experiments);
  return CLI::Formatter::make_group(std::move(group), is_positional, std::move(options));
}

std::string Help::make_description(const CLI::App* app) const {
  return wrap(app->get_description(), columns_max) + "\n\n";
}

std::string Help::make_usage(const CLI::App* app, std::string name) const {
  return wrap(CLI::Formatter::make_usage(app, std::move(name)), columns_max, more_indent) + "\n";
}

std::string Help::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

std::string Help::make_option(const CLI::Option* option, bool is_positional) const {
  const std::string name = make_option_name(option, is_positional);
  // The library adds what a flag means that switches off: "--no-probe{false}".
  return entry(name.substr(0, name.find('{')) + make_option_opts(option), make_option_desc(option));
}

std::string Help::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return {};  // a flag
  const std::string values = values_of(*option);
  const bool is_told_by_name = !option->nonpositional() && values == "TEXT";
  std::string text = values.empty() || is_told_by_name ? "" : " " + values;
  if (option->get_expected_max() == CLI::detail::expected_max_vector_size)
    text += option->get_delimiter() == ',' ? ",..." : " ...";
  return text + (option->get_required() ? " (required)" : "");
}

std::string Help::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description(), usual = option->get_default_str();
  if (is_short_) text = CLI::detail::find_and_replace(text, " wdtcp:paper,", "");
  if (usual.starts_with('[') && usual.ends_with(']'))
    usual = usual.substr(1, usual.size() - 2);  // a list
  if (!usual.empty()) text += " (default: " + usual + ")";
  if (!option->get_needs().empty()) text += "; with " + names_of(option->get_needs());
  if (!option->get_excludes().empty()) text += "; not with " + names_of(option->get_excludes());
  return text;
}

}  // namespace onehop::tool
