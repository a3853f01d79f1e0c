// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The options that send and recv share, as read from the command line, a configuration file and the environment.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/law/params.hpp"
#include "engine/base/result.hpp"
#include "engine/base/units.hpp"

namespace onehop::tool {

struct CommonOptions {
  std::string io = "auto";
  std::string xdp_mode = "auto";
  std::string interface;
  std::string eal;                   ///< arguments of DPDK's EAL; only with io dpdk
  std::size_t frame_bytes = 0;       ///< UDP payload of a full frame; 0: as the MTU allows
  std::string law = "auto";
  bool has_qcut = false;
  std::string repair;                ///< eager, lazy; empty: eager to send, what the sender asks for to receive
  law::LawParams law_params;         ///< with what a parameter file says
  std::string law_params_of;         ///< the law that the file names; empty: there was no file
  std::string target = "under";
  std::string bounds = "measured";
  std::string priority = "normal";
  std::optional<int> tid;            ///< of data frames on Wi-Fi, in place of the one that the priority has: --mac-noack sets it
  std::string rate_max;
  std::string poll = "adaptive";
  std::optional<int> core;
  std::string code_file;
  std::string digest = "xxh3";
  std::string file_io = "auto";
  std::string aead = "auto";         ///< ipsec-mb, openssl: `onehop bench` compares them
  std::uint64_t key_interval_packets = 1U << 22;
  std::string trace_file;
  std::string link_model;            ///< socket file on which a model of the link publishes its facts
  bool is_json = false;
  bool is_quiet = false;
};

struct SendOptions {
  CommonOptions common;
  std::vector<std::string> paths;
  std::string to;
  double wait_seconds = 5;
  bool has_fragments = false;
  bool has_mac_noack = false;
};

struct RecvOptions {
  CommonOptions common;
  std::string directory = ".";
  std::string listen;
  std::string on_exist = "ask";
  bool is_hidden_allowed = false;    ///< names that begin with a dot, and names in folders
  bool is_once = false;
};

struct WatchOptions {
  int pid = 0;                       ///< 0: the one that runs
  std::optional<double> interval_seconds;
  bool is_once = false;
  bool is_json = false;
};

struct PlotOptions {
  std::vector<std::string> traces, labels;
  std::vector<std::string> capacities;  ///< none, one for all traces, or one for each: a rate, or a file of lab run --rate-log
  std::vector<std::string> only;        ///< plates; empty: all
  std::string out, title;
  std::string on_exist = "ask";
};

/// Endpoint: HOST[:PORT], V6, [V6][:PORT], or :PORT. host is empty where none was given.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
};
inline constexpr std::uint16_t default_port = 7411;

void add_common_options(CLI::App& app, CommonOptions& options);
[[nodiscard]] Result<Endpoint> parse_endpoint(const std::string& text);

/// command_line joins argv for the first line of output files.
[[nodiscard]] std::string command_line();
void remember_command_line(int argc, const char* const* argv);

}  // namespace onehop::tool
