// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Reporter: what a run tells people (standard error) and programs (JSON lines on standard output).
//
// Each JSON line carries schema_version and type; keys are only ever added within a schema version.
// Numbers are integers in bytes, ns, packets, but for seconds and ratios.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "engine/base/result.hpp"
#include "tools/onehop/options.hpp"

namespace onehop::tool {

using Json = nlohmann::ordered_json;

/// io_text says for people how frames leave and why, in lines of less than 80 columns.
[[nodiscard]] std::string io_text(const api::PortOpened& opened);

/// cost_text says where the CPU time of a byte went, by thread, and how often the engine core and
/// all threads woke up; empty where nothing was moved.
[[nodiscard]] std::string cost_text(const api::End& end);

/// json_of is the body of an event's line.
[[nodiscard]] Json json_of(const api::Started& started);
[[nodiscard]] Json json_of(const api::Found& found);
[[nodiscard]] Json json_of(const api::LeftOut& left_out);
[[nodiscard]] Json json_of(const api::PortOpened& opened);
[[nodiscard]] Json json_of(const api::Interval& interval);
[[nodiscard]] Json json_of(const api::FileDone& file);
[[nodiscard]] Json json_of(const api::End& end);

/// file_text is the line of a file that is done; empty where a LeftOut has it.
[[nodiscard]] std::string file_text(const api::FileDone& done);

class Reporter {
 public:
  /// `command` is the prefix of warnings and errors: "send".
  Reporter(const OutputOptions& options, std::string command)
      : command_{std::move(command)}, is_json_{options.is_json}, is_quiet_{options.is_quiet} {}

  [[nodiscard]] const std::string& command() const { return command_; }
  [[nodiscard]] bool is_quiet() const { return is_quiet_; }
  /// set_session sets the `session` of the events that follow; 0: none.
  void set_session(std::uint64_t number) { session_ = number; }
  void event(const std::string& type, const Json& body) const;  ///< JSON line, if asked for
  void say(const std::string& text) const;                      ///< a line for people, unless quiet
  void warn(const std::string& text) const;                     ///< a line for people, always
  void error(const Error& error) const;  ///< one clear line, and the error event
  void interval(const api::Interval& interval) const;
  void end(const api::End& end) const;

 private:
  std::string command_;
  bool is_json_;
  bool is_quiet_;
  std::uint64_t session_ = 0;
};

inline constexpr int schema_version = 1;
inline constexpr const char* cpu_method =
    "getrusage(self + children) from exec + ksoftirqd growth from first data to end";

}  // namespace onehop::tool
