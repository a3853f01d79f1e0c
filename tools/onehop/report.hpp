// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Reporter: what a run tells people (standard error) and programs (JSON lines on standard output).
//
// Events: start, interval, file, end, error. Each carries schema_version and type; keys are only ever added within a
// schema version. Numbers are integers in bytes, ns, packets, but for seconds and ratios.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/link/interface_drops.hpp"
#include "engine/base/path.hpp"
#include "engine/base/result.hpp"
#include "engine/port/port.hpp"
#include "tools/onehop/options.hpp"
#include "tools/onehop/usage.hpp"

namespace onehop::tool {

using Json = nlohmann::ordered_json;

/// tell writes to standard error. A terminal that has hung up, or a pipe that nobody reads, does not end a transfer: a
/// failure is ignored.
void tell(std::string_view text) noexcept;

/// name_of is the word of a scope in events.
[[nodiscard]] const char* name_of(QueueScope scope);

/// RunFacts: what the end event needs beyond the last RateState.
struct RunFacts {
  std::string role;                 ///< "send" or "recv"
  std::string io_requested, io_used, io_mode, io_reason;
  std::string repair = "eager";     ///< as agreed
  std::string fragments = "off";    ///< "on", and when sending "given_up"
  std::string law;
  std::string file_io;
  std::string aead;
  std::string digest;
  std::uint64_t bytes_total = 0;    ///< verified file bytes, counted once
  std::uint64_t bytes_skipped_total = 0;  ///< of these, those that were there already (resume)
  std::uint64_t files_total = 0;
  std::uint64_t files_kept_total = 0;     ///< offered, and not written: something else has their names
  std::string peer;                 ///< its address
  std::string directory;            ///< of the receiver, where the files go; escaped
  std::string path;                 ///< of the file that was done last, under its final name; escaped
  double seconds = 0;
  std::uint64_t voluntary_switches_total = 0;  ///< all threads
  std::map<std::string, double> thread_cpu_seconds;  ///< by thread, when the data path ended
  bool is_hash_ok = false;
  PortInfo port;
  std::string interface;
  std::optional<std::vector<link::InterfaceDrops::Drops>> interface_drops;  ///< sending: of all programs; absent: not known
  std::string link_source{"none"};  ///< who read facts of the link
  std::size_t frame_bytes = 0;
};

/// io_text says for people how frames leave and why, in lines of less than 80 columns.
[[nodiscard]] std::string io_text(const RunFacts& facts);

class Reporter {
 public:
  /// `command` is what a warning or an error is told of: "send".
  Reporter(const CommonOptions& options, std::string command)
      : command_{std::move(command)}, is_json_{options.is_json}, is_quiet_{options.is_quiet} {}

  void event(const std::string& type, Json body) const;   ///< JSON line, if asked for
  void say(const std::string& text) const;                ///< a line for people, unless quiet
  void warn(const std::string& text) const;               ///< a line for people, always
  void error(const Error& error) const;                   ///< one clear line, and the error event
  void end(const RunFacts& facts, const RateState& state, const UsageMeter& usage, ExitCode code) const;
  [[nodiscard]] bool is_json() const { return is_json_; }
  [[nodiscard]] bool is_quiet() const { return is_quiet_; }

 private:
  std::string command_;
  bool is_json_;
  bool is_quiet_;
};

inline constexpr int schema_version = 1;
inline constexpr const char* cpu_method = "getrusage(self + children) from exec + ksoftirqd growth from first data to end";

}  // namespace onehop::tool
