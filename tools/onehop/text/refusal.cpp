// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/text/refusal.hpp"

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "engine/base/system/text_file.hpp"
#include "tools/onehop/text/encoding.hpp"
#include "tools/onehop/text/help.hpp"

namespace onehop::tool {

namespace {

constexpr const char* reading = "read the command line";

Error usage(std::string attempt, std::string cause, std::string hint) {
  return {ExitCode::usage, std::move(attempt), std::move(cause), std::move(hint), 0};
}

const CLI::App& deepest(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

/// find_option finds the option that the library's sentence is about, of `command` or of one above
/// it: the first that it names.
const CLI::Option* find_option(const CLI::App& command, const std::string& sentence) {
  std::istringstream words{sentence};
  for (std::string word; words >> word;) {
    if (word.ends_with(':')) word.pop_back();
    for (const CLI::App* at = &command; at != nullptr; at = at->get_parent())
      if (const CLI::Option* option = at->get_option_no_throw(word)) return option;
  }
  return nullptr;
}

/// name_of also has a name for options that the help leaves out.
std::string name_of(const CLI::Option& option) {
  return option.get_name().empty() && !option.get_lnames().empty()
             ? "--" + option.get_lnames().front()
             : option.get_name();
}

std::string with_values(const CLI::Option& option) {
  return name_of(option) + (option.nonpositional() ? " " + values_of(option) : "");
}

Error unexpected(const CLI::App& command, const std::string& word, const std::string& see) {
  const bool has_commands = !command.get_subcommands([](const CLI::App*) { return true; }).empty();
  const bool is_command = has_commands && !word.starts_with('-');
  return usage(
      reading,
      is_command ? "there is no command '" + word + "'" : "'" + word + "' was not expected", see);
}

/// A file behind --config that cannot be read; the library has forgotten why.
Error unreadable(const std::string& file) {
  const std::string attempt = "read the options in " + file;
  constexpr const char* hint = "Check what --config names";
  if (::access(file.c_str(), R_OK) != 0) return errno_error(ExitCode::usage, attempt, hint);
  // from_config() has refused it.
  const TextFile text{file};
  if (std::string fault = encoding_fault(text.str()); !fault.empty())
    return usage(attempt, std::move(fault), encoding_hint);
  return usage(attempt, "it is no file", hint);
}

Error unknown_key(const std::string& file, std::string_view sentence) {
  constexpr std::string_view before = "INI was not able to parse ",
                             after = ".++";  // the last: a section as a whole
  if (sentence.starts_with(before)) sentence.remove_prefix(before.size());
  if (sentence.ends_with(after)) sentence.remove_suffix(after.size());
  sentence = sentence.substr(0, sentence.find(':'));  // what follows the key
  return usage("read the options in " + file, "'" + std::string{sentence} + "' is not an option",
               "See 'onehop send --help', 'onehop recv --help'");
}

/// The other word of "--iface requires --to".
std::string last_word(const std::string& sentence) {
  return sentence.substr(sentence.rfind(' ') + 1);
}

Error cannot_be(const CLI::Option& option, std::string remedy) {
  return usage("read " + name_of(option),
               "it cannot be '" + CLI::detail::join(option.results(), ",") + "'",
               std::move(remedy));
}

bool is_no_number(const std::string& text) {
  return std::isnan(std::strtod(text.c_str(), nullptr));
}

Error about(const CLI::Option& option, const CLI::Error& error, const std::string& see) {
  const std::string kind = error.get_name(), sentence = error.what(),
                    attempt = "read " + name_of(option);
  if (kind == "RequiredError")
    return usage(reading, name_of(option) + " is missing",
                 "Add " + with_values(option) + " (" + option.get_description() + ")");
  if (kind == "RequiresError")
    return usage(attempt, "it needs " + last_word(sentence), "Add " + last_word(sentence));
  if (kind == "ExcludesError")
    return usage(attempt, "it excludes " + last_word(sentence), "Leave one of them out");
  if (kind == "ArgumentMismatch" && sentence.ends_with("missing"))
    return usage(attempt, "its value is missing", "Write " + with_values(option));
  if (kind == "ArgumentMismatch")
    return usage(attempt, "it was given more than once", "Give it once");
  const bool is_limited = values_of(option) != option.get_type_name();
  if (is_limited || kind == "ConversionError")
    return cannot_be(option, is_limited ? "Take " + values_of(option) : see);
  const std::string before = name_of(option) + ": ";
  return usage(attempt, sentence.starts_with(before) ? sentence.substr(before.size()) : sentence,
               see);
}

}  // namespace

std::string words_of(const CLI::App& app) {
  std::string words = app.get_name();
  for (const CLI::App* command = &app; !command->get_subcommands().empty();) {
    command = command->get_subcommands().front();
    words += " " + command->get_name();
  }
  return words;
}

std::optional<Error> value_fault(const CLI::App& app) {
  for (const CLI::App* command = &deepest(app); command != nullptr; command = command->get_parent())
    for (const CLI::Option* option : command->get_options()) {
      if (!option->nonpositional() || option->get_items_expected_max() == 0) continue;
      const std::vector<std::string>& given = option->results();
      if (std::ranges::find(given, std::string{}) != given.end())
        return usage("read " + name_of(*option), "its value is empty",
                     "Write " + with_values(*option) + ", or leave it out");
      if (option->get_type_name().starts_with("FLOAT") && std::ranges::any_of(given, is_no_number))
        return cannot_be(*option, "Take " + values_of(*option));
    }
  return std::nullopt;
}

Error refusal_of(const CLI::App& app, const CLI::Error& error) {
  const CLI::App& command = deepest(app);
  const std::string see = "See '" + words_of(app) + " --help'", kind = error.get_name();
  if (kind == "FileError") return unreadable(app.get_config_ptr()->as<std::string>());
  // Before the words that remain: CLI11 2.4 counts the values of an unknown key among them.
  if (kind == "ConfigError")
    return unknown_key(app.get_config_ptr()->as<std::string>(), error.what());
  // Also where the library misses a command first. (It gives this error the command's name in place
  // of its own.)
  if (const auto words = app.remaining(true); !words.empty())
    return unexpected(command, words.front(), see);
  if (const CLI::Option* const option = find_option(command, error.what()))
    return about(*option, error, see);
  if (kind == "RequiredError") return usage(reading, "the command is missing", see);
  return usage(reading, error.what(), see);
}

}  // namespace onehop::tool
