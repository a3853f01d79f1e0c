// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The program's commands, one file each. They return what the process exits with, and have said
// everything by then.
#pragma once

#include <string>

#include "engine/base/result.hpp"
#include "tools/onehop/options.hpp"

namespace onehop::tool {

struct DoctorOptions {
  std::string interface;  ///< empty: every interface that is up, or loopback where none is
  bool is_json = false;
  bool is_probing = true;  ///< try the AF_XDP modes; attaching a program takes the link of some
                           ///< drivers down for a second
  bool is_on_spare_queue = false;  ///< on one queue alone, and with a frame
  std::string report_file;         ///< empty: none
  std::string peer;                ///< empty: look at interfaces
  bool has_system_calls = false;   ///< print the list of send and recv, and nothing else
};

/// run_program reads the command line, runs the command, and returns the exit code.
[[nodiscard]] int run_program(int argc, char** argv);

[[nodiscard]] ExitCode send_command(SendCommand command);
[[nodiscard]] ExitCode recv_command(RecvCommand command);
[[nodiscard]] ExitCode code_command();
[[nodiscard]] CLI::App* add_pair_command(CLI::App& app, PairCommand& pair);
[[nodiscard]] ExitCode pair_command(PairCommand command);
[[nodiscard]] CLI::App* add_peers_command(CLI::App& app, PeersCommand& peers);
[[nodiscard]] ExitCode peers_command(const PeersCommand& command);
[[nodiscard]] CLI::App* add_receipt_command(CLI::App& app, ReceiptCommand& receipt);
[[nodiscard]] ExitCode receipt_command(const ReceiptCommand& command);
[[nodiscard]] ExitCode doctor_command(const DoctorOptions& options);
[[nodiscard]] CLI::App* add_watch_command(CLI::App& app, WatchOptions& watch);
[[nodiscard]] ExitCode watch_command(const WatchOptions& options);
[[nodiscard]] CLI::App* add_rings_command(CLI::App& app, RingsOptions& rings);
[[nodiscard]] ExitCode rings_command(const RingsOptions& options);
[[nodiscard]] ExitCode version_command(bool is_verbose);

}  // namespace onehop::tool
