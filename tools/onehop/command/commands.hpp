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

void add_send_options(CLI::App& command, SendCommand& send);
[[nodiscard]] ExitCode send_command(SendCommand command);
void add_recv_options(CLI::App& command, RecvCommand& recv);
[[nodiscard]] ExitCode recv_command(RecvCommand command);
[[nodiscard]] ExitCode code_command();
void add_pair_options(CLI::App& command, PairCommand& pair);
[[nodiscard]] ExitCode pair_command(PairCommand command);
void add_peers_options(CLI::App& command, PeersCommand& peers);
[[nodiscard]] ExitCode peers_command(const PeersCommand& command);
void add_receipt_options(CLI::App& command, ReceiptCommand& receipt);
[[nodiscard]] ExitCode receipt_command(const ReceiptCommand& command);
[[nodiscard]] ExitCode doctor_command(const DoctorOptions& options);
void add_watch_options(CLI::App& command, WatchOptions& watch);
[[nodiscard]] ExitCode watch_command(const WatchOptions& options);
void add_rings_options(CLI::App& command, RingsOptions& rings);
[[nodiscard]] ExitCode rings_command(const RingsOptions& options);
[[nodiscard]] ExitCode version_command(bool is_verbose);

}  // namespace onehop::tool
