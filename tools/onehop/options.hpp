// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The options that send and recv share, as read from the command line, a configuration file and the
// environment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/transfer/api/transfer.hpp"
#include "tools/onehop/command_line.hpp"

namespace CLI {
class App;
}

namespace onehop::tool {

/// OutputOptions: what the program itself does about a transfer.
struct OutputOptions {
  std::string code_file;
  bool is_code_hidden = false;  ///< while it is typed
  std::string report_file;      ///< of what was left out or has no name there; empty: none
  bool is_json = false;
  bool is_quiet = false;
  bool is_verbose = false;
  bool has_all_files = false;  ///< a line for each file, with its digest
  std::string user;            ///< whose files these are; empty: as find_user() has it
  bool is_remembered = false;  ///< the two devices are to get to know each other
  bool is_pairing = false;     ///< only pair, without files
  bool is_service = false;     ///< several sessions, without a user present
  std::string device_name;     ///< by which this one introduces itself; empty: the host's
};

/// ExcludeWord: one --exclude, --include or --exclude-from; their order counts.
struct ExcludeWord {
  enum class Kind { exclude, include, file };
  Kind kind = Kind::exclude;
  std::string text;
};

/// P2pChoice: a sender's Wi-Fi Direct group, for this transfer alone.
struct P2pChoice {
  bool is_wanted = false;
  std::string peer;  ///< name or address; empty: the only one
};

struct SendCommand {
  api::SendOptions transfer;
  OutputOptions output;
  P2pChoice p2p;
  std::vector<ExcludeWord> excludes;
  bool is_dry_run = false;
  bool has_wait = false;  ///< --wait was given
  std::string device;     ///< the paired device that it is sent to; empty: by the code
  std::string found_as;   ///< the name that the receiver showed; empty: it was not looked for
};

/// ServiceOptions: what a service does beside receiving.
struct ServiceOptions {
  std::string metrics_file;  ///< empty: none
  std::string on_received;   ///< the program; empty: none
};

struct RecvCommand {
  api::ReceiveOptions transfer;
  OutputOptions output;
  ServiceOptions service;
  std::uint32_t sessions = 4;        ///< at once, of a service
  bool is_p2p = false;               ///< over a Wi-Fi Direct group of its own
  std::optional<std::string> clean;  ///< the folder; none: receive
  std::string name;                  ///< shown to who looks for receivers; empty: the host's
  bool is_hidden = false;            ///< does not answer who looks for receivers
  bool is_dry_run = false;
};

/// PairCommand: one of the two sides, which one is seen when the other one is looked for.
struct PairCommand {
  std::string to;      ///< name or address of the other; empty: the device that pairs on a link
  std::string listen;  ///< where it is waited for
  std::string interface;
  OutputOptions output;
};

struct PeersCommand {
  std::string name, new_name;               ///< of what is changed
  std::optional<std::string> rule, folder;  ///< of `set`
  std::optional<std::uint64_t> quota_bytes;
  enum class Verb { list, rename, forget, set } verb = Verb::list;
  bool is_json = false;
};

struct ReceiptCommand {
  std::string file;
};

struct WatchOptions {
  int pid = 0;  ///< 0: the one that runs
  std::optional<double> interval_seconds;
  bool is_once = false;
  bool is_json = false;
};

struct RingsOptions {
  std::string program;  ///< PID or name; empty: the only one
  double rate_hz = 50;
  std::optional<double> interval_seconds;
  std::vector<std::string> fail_above, fail_below;  ///< "80", "rx=80"
  std::string trace_file;                           ///< empty: none
  bool is_once = false;
  bool is_json = false;
};

/// add_tree_options: what of the folders is sent.
void add_tree_options(CLI::App& app, SendCommand& send);

/// add_found_options: whether and as whom a receiver is found.
void add_found_options(CLI::App& app, RecvCommand& recv);

/// add_service_options: --service and what goes with it alone.
void add_service_options(CLI::App& app, RecvCommand& recv);

/// add_p2p_options: a sender's --p2p and --peer, and a receiver's --p2p, where this build has Wi-Fi
/// Direct.
void add_p2p_options(CLI::App& app, P2pChoice& choice);
void add_p2p_option(CLI::App& app, RecvCommand& recv);

void add_common_options(CLI::App& app, api::Options& options, OutputOptions& output);

}  // namespace onehop::tool
