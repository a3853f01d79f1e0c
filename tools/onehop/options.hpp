// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The options that send and recv share, as read from the command line, a configuration file and the
// environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transfer/transfer.hpp"

namespace CLI {
class App;
}

namespace onehop::tool {

/// OutputOptions: what the program itself does about a transfer.
struct OutputOptions {
  std::string code_file;
  bool is_json = false;
  bool is_quiet = false;
};

struct SendCommand {
  api::SendOptions transfer;
  OutputOptions output;
};

struct RecvCommand {
  api::ReceiveOptions transfer;
  OutputOptions output;
};

struct WatchOptions {
  int pid = 0;  ///< 0: the one that runs
  std::optional<double> interval_seconds;
  bool is_once = false;
  bool is_json = false;
};

struct PlotOptions {
  std::vector<std::string> traces, labels;
  std::vector<std::string> capacities;  ///< none, one for all traces, or one for each: a rate, or a
                                        ///< file of lab run --rate-log
  std::vector<std::string> only;        ///< plates; empty: all
  std::string out, title;
  std::string on_exist = "ask";
};

void add_common_options(CLI::App& app, api::Options& options, OutputOptions& output);

/// command_line joins argv for the first line of output files.
[[nodiscard]] std::string command_line();
void remember_command_line(int argc, const char* const* argv);

}  // namespace onehop::tool
