// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/options.hpp"

#include <charconv>

#include "control/law/make_law.hpp"

namespace onehop::tool {

namespace {
std::string remembered_command_line;
}

// The groups are the headings of the help.
void add_common_options(CLI::App& app, CommonOptions& o) {
  app.add_option("--code-file", o.code_file, "file that holds the code ('-' for standard input; else ONEHOP_CODE, else a prompt)")->type_name("FILE");
  CLI::OptionDefaults& defaults = *app.option_defaults();
  defaults.group("Rate");
  app.add_option("--max-rate", o.rate_max, "never faster than this, at either end (600Mbit, 1.5Gbit)")->type_name("RATE");
  app.add_option("--priority", o.priority, "background yields to other traffic (SO_PRIORITY, DSCP CS1)")
      ->check(CLI::IsMember({"background", "normal"}))->capture_default_str();
  app.add_option("--law", o.law, "rate law: " + std::string{law::law_words})->type_name("LAW")->capture_default_str();
  app.add_option("--target", o.target, "where in the safe range the lower queue is held")
      ->check(CLI::IsMember({"under", "mid", "zero"}))->capture_default_str();
  app.add_option("--bounds", o.bounds, "rate bounds of the safe range")
      ->check(CLI::IsMember({"measured", "strict"}))->capture_default_str();
  app.add_flag("--qcut", o.has_qcut, "keep the queue below us short: a gate around the law");
  app.add_option("--repair", o.repair, "eager sends lost data again at once, lazy in rounds (default: eager; the receiver follows the sender)")
      ->check(CLI::IsMember({"eager", "lazy"}));
  defaults.group("Link");
  app.add_option("--io", o.io, "how frames reach the link; a named one never falls back")
      ->check(CLI::IsMember({"auto", "udp", "afxdp", "dpdk"}))->capture_default_str();
  app.add_option("--xdp-mode", o.xdp_mode, "AF_XDP mode, with --io afxdp; a named one never falls back")
      ->check(CLI::IsMember({"auto", "zero-copy", "copy", "skb"}))->capture_default_str();
  app.add_option("--eal", o.eal, "arguments of DPDK's EAL in one string, for --io dpdk (\"--vdev=net_memif0,role=client\")")->type_name("ARGS");
  app.add_option("--iface", o.interface, "network interface to use (default: the route to the peer)")->type_name("IF");
  app.add_option("--frame-size", o.frame_bytes, "UDP payload of a full frame in bytes (default: what the MTU allows)")
      ->check(CLI::Range(512, 65000));
  app.add_option("--poll", o.poll, "adaptive sleeps between bursts, busy owns its core")
      ->check(CLI::IsMember({"adaptive", "busy"}))->capture_default_str();
  app.add_option("--core", o.core, "CPU for the engine thread")->type_name("N");
  app.add_option("--key-interval", o.key_interval_packets, "packets per data key, a power of two")
      ->check(CLI::Range(256, 1 << 22))->capture_default_str();
  defaults.group("Files");
  app.add_option("--digest", o.digest, "digest of blocks and files")
      ->check(CLI::IsMember({"xxh3", "sha256"}))->capture_default_str();
  app.add_option("--file-io", o.file_io, "how files are read and written")
      ->check(CLI::IsMember({"auto", "io_uring", "threads"}))->capture_default_str();
  defaults.group("Output");
  app.add_option("--trace", o.trace_file, "write one row per control tick to this file (CSV)")->type_name("FILE");
  app.add_flag("--json", o.is_json, "events as JSON lines on standard output, text on standard error");
  app.add_flag("--quiet", o.is_quiet, "no progress and no summary");
  defaults.group("Options");
}

Result<Endpoint> parse_endpoint(const std::string& text) {
  const auto refuse = [&](std::string cause) {
    return Error{ExitCode::usage, "read the address '" + text + "'", std::move(cause),
                 "Write HOST, HOST:PORT, [IPv6] or [IPv6]:PORT"};
  };
  Endpoint endpoint{"", default_port};
  std::string port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string::npos) return refuse("the bracket is not closed");
    endpoint.host = text.substr(1, close - 1);
    if (endpoint.host.find(':') == std::string::npos) return refuse("only an IPv6 address stands in brackets");
    if (close + 1 < text.size()) {
      if (text[close + 1] != ':') return refuse("after the bracket only :PORT may follow");
      port = text.substr(close + 2);
      if (port.empty()) return refuse("the port is missing");
    }
  } else if (const std::size_t colon = text.find(':'); colon != std::string::npos && text.find(':', colon + 1) == std::string::npos) {
    endpoint.host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.empty()) return refuse("the port is missing");
  } else {
    endpoint.host = text;  // a bare IPv6 address has several colons and no port
  }
  if (!port.empty()) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), value);
    if (error != std::errc{} || end != port.data() + port.size() || value == 0 || value > 65535)
      return refuse("the port is not a number from 1 to 65535");
    endpoint.port = static_cast<std::uint16_t>(value);
  }
  return endpoint;
}

std::string command_line() { return remembered_command_line; }

void remember_command_line(int argc, const char* const* argv) {
  for (int i = 0; i < argc; ++i) remembered_command_line += (i == 0 ? "" : " ") + std::string{argv[i]};
}

}  // namespace onehop::tool
