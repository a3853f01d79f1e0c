// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/bench/options.hpp"

#include <CLI/CLI.hpp>
#include <sched.h>

#include <algorithm>
#include <charconv>

#include "control/law/make_law.hpp"
#include "engine/base/rate_text.hpp"
#include "engine/crypto/aead.hpp"
#include "engine/disk/file_io.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::bench {

namespace {

Result<void> check_affinity(BenchOptions& o) {
  const auto bad = [&](const char* cause) {
    return Error{ExitCode::usage, "read -A " + o.affinity, cause, "Write N or N,M: CPUs from 0"};
  };
  std::string_view text = o.affinity;
  int index = 0;
  while (!text.empty()) {
    int cpu = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
    if (error != std::errc{} || cpu < 0 || index > 1)
      return bad("it is not one or two CPU numbers");
    (index++ == 0 ? o.sender_cpu : o.receiver_cpu) = cpu;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) break;
    if (text.front() != ',' || text.size() == 1) return bad("it is not one or two CPU numbers");
    text.remove_prefix(1);
  }
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return errno_error(ExitCode::internal_error, "read the CPUs this process may use");
  for (const std::optional<int>& cpu : {o.sender_cpu, o.receiver_cpu})
    if (cpu && (*cpu >= CPU_SETSIZE || !CPU_ISSET(static_cast<unsigned>(*cpu), &allowed)))
      return Error{ExitCode::usage, "take -A " + o.affinity,
                   "this process may not run on CPU " + std::to_string(*cpu),
                   "Choose one that 'taskset -cp $$' lists"};
  return success();
}

Result<void> check_hosts(const BenchOptions& o) {
  const auto refuse = [](const char* what, const char* why, const char* hint) {
    return Error{ExitCode::usage, std::string{"bench loop --to with "} + what, why, hint};
  };
  if (o.bytes == 0)
    return refuse("a time", "both ends must know when it is over",
                  "Name an amount with -n, for example -n 1G");
  if (o.has_parts)
    return refuse("--parts", "a flood's two ends share memory",
                  "Leave --to out: --parts takes a lab");
  if (o.parallel > 1 || o.is_both_ways || o.is_reverse)
    return refuse("-P, -R or --bidir", "the other host runs one receiving end",
                  "Leave them out, or take a lab");
  if (o.baseline.starts_with("iperf3"))
    return refuse("--baseline", "iperf3 is started in a lab only", "Leave --to out");
  if (is_quic(o.baseline))
    return refuse("--baseline", "QUIC's programs are started in a lab only", "Leave --to out");
  return success();
}

/// QUIC's programs send one stream one way, as fast as they can.
Result<void> check_quic(const BenchOptions& o) {
  if (!is_quic(o.baseline)) {
    if (o.peers.empty()) return success();
    return Error{ExitCode::usage, "bench loop --peers", "nothing of it is measured",
                 "Add --baseline quinn or --baseline s2n-quic"};
  }
  const bool is_paced =
      std::ranges::any_of(o.rate, [](const std::string& rate) { return rate != "flood"; });
  if (o.parallel == 1 && !o.is_both_ways && !is_paced) return success();
  return Error{ExitCode::usage,
               "bench loop --baseline " + o.baseline + " with -P, --bidir or --rate",
               "its program sends one stream one way, as fast as it can",
               "Leave them out, or take --baseline iperf3-tcp"};
}

/// A session's frames are at least those that `onehop send --frame-size` takes, a flood's carry at
/// least their seal.
Result<void> check_frames(const BenchOptions& o) {
  constexpr std::size_t session_bytes_min = 512;
  const std::size_t least = is_session(o.part)     ? session_bytes_min
                            : o.part == Part::port ? wire::overhead_bytes + 1
                                                   : 1;
  for (const std::size_t bytes : o.frame_bytes)
    if (bytes != 0 && bytes < least)
      return Error{
          ExitCode::usage, "take frames of " + std::to_string(bytes) + " bytes (--frame-size)",
          "bench " + std::string{name_of(o.part)} + " takes " + std::to_string(least) + " or more",
          "Take larger ones, or 0 for what the MTU allows"};
  return success();
}

Result<void> check_loop(const BenchOptions& o) {
  if (!o.to.empty()) {
    ONEHOP_TRYV(check_hosts(o));
  }
  ONEHOP_TRYV(check_quic(o));
  if (o.to.empty() && (!o.interface.empty() || !o.code_file.empty()))
    return Error{ExitCode::usage, "bench loop", "--iface and --code-file are for two hosts",
                 "Add --to HOST, or leave them out"};
  const bool has_file = o.source == "file" || o.sink == "file";
  if (has_file && o.bytes == 0)
    return Error{ExitCode::usage, "bench loop", "a file has a size, not a time",
                 "Name the size with -n, for example -n 1G"};
  for (const std::string& digest : o.digest)
    if (has_file && digest == "none")
      return Error{ExitCode::usage, "bench loop --digest none", "files are always digested",
                   "Take --source memory --sink memory, or another digest"};
  return success();
}

}  // namespace

const char* name_of(Part part) noexcept {
  switch (part) {
    case Part::loop: return "loop";
    case Part::serve: return "serve";
    case Part::port: return "port";
    case Part::aead: return "aead";
    case Part::digest: return "digest";
    case Part::file: return "file";
    case Part::law: return "law";
    case Part::ring: return "ring";
  }
  return "";
}

bool is_quic(const std::string& baseline) { return baseline == "quinn" || baseline == "s2n-quic"; }

Result<std::uint64_t> parse_amount(const std::string& text) {
  const Error bad{ExitCode::usage, "read the amount '" + text + "'", "it is not a number of bytes",
                  "Write 1000000, 512M or 2G"};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return bad;
  const std::string_view unit{end, static_cast<std::size_t>(text.data() + text.size() - end)};
  constexpr std::string_view units = "KMGT";
  if (unit.size() > 1) return bad;
  if (!unit.empty()) {
    const std::size_t at =
        units.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit.front()))));
    if (at == std::string_view::npos) return bad;
    number *= static_cast<double>(std::uint64_t{1} << (10 * (at + 1)));
  }
  if (!(number >= 1 && number <= 1e15)) return bad;  // so that NaN fails as well
  return static_cast<std::uint64_t>(number);
}

Result<IoChoice> parse_io(const std::string& text) {
  const std::size_t colon = text.find(':');
  const IoChoice choice{text.substr(0, colon),
                        colon == std::string::npos ? "auto" : text.substr(colon + 1)};
  const bool is_known = choice.io == "udp" || choice.io == "afxdp" || choice.io == "dpdk";
  const bool is_mode = choice.mode == "auto" ||
                       (choice.io == "afxdp" && (choice.mode == "zero-copy" ||
                                                 choice.mode == "copy" || choice.mode == "skb"));
  if (is_known && is_mode) return choice;
  return Error{ExitCode::usage, "take --io " + text,
               is_known ? "it has no such mode" : "there is no such port",
               "Take udp, afxdp, afxdp:zero-copy, afxdp:copy, afxdp:skb or dpdk"};
}

/// What a sweep that was not given goes over.
static void set_defaults(BenchOptions& o) {
  if (o.frame_bytes.empty())
    o.frame_bytes = o.part == Part::aead ? std::vector<std::size_t>{1472, 3472, 8972}
                                         : std::vector<std::size_t>{0};
  if (o.digest.empty())
    o.digest = o.part == Part::digest ? std::vector<std::string>{"xxh3", "sha256"}
                                      : std::vector<std::string>{"xxh3"};
  if (o.law.empty())
    o.law = o.part == Part::law ? std::vector<std::string>{"auto", "safe-range", "wdtcp", "cupid"}
                                : std::vector<std::string>{"auto"};
  if (!o.aead.empty()) return;
  if (o.part != Part::aead)
    o.aead = {"auto"};
  else if (crypto::is_available(crypto::AeadBackend::ipsec_mb))
    o.aead = {"ipsec-mb", "openssl", "chacha20"};
  else
    o.aead = {"openssl", "chacha20"};
}

Result<void> check_options(BenchOptions& o) {
  set_defaults(o);
  if (o.is_json && o.is_document)
    return Error{ExitCode::usage, "bench", "--json and -J are two forms of one output",
                 "Take one of them"};
  if (!o.amount.empty()) {
    ONEHOP_TRY(bytes, parse_amount(o.amount));
    o.bytes = bytes;
  }
  ONEHOP_TRYV(check_affinity(o));
  for (const std::string& rate : o.rate)
    if (rate != "flood") {
      ONEHOP_TRYV(parse_rate(rate));
    }
  if (o.part == Part::loop || o.part == Part::law)
    for (const std::string& law : o.law) {
      ONEHOP_TRYV(law::make_law({.spec = law}));
    }
  if (!o.eal.empty() &&
      !std::ranges::any_of(o.io, [](const std::string& io) { return io == "dpdk"; }))
    return Error{ExitCode::usage, "bench --eal", "it is for --io dpdk",
                 "Add dpdk to --io, or leave --eal out"};
  ONEHOP_TRYV(check_frames(o));
  const bool is_crowded = o.parallel > 1 || o.is_both_ways;
  for (const std::string& io : o.io) {
    ONEHOP_TRY(choice, parse_io(io));
    if (is_crowded && choice.io != "udp")
      return Error{ExitCode::usage, "bench --io " + io + " with -P or --bidir",
                   "a queue of the interface belongs to one process", "Take --io udp"};
  }
  if (o.is_reverse && o.is_both_ways)
    return Error{ExitCode::usage, "bench", "-R and --bidir exclude each other", "Take one of them"};
  if (o.part == Part::loop) {
    ONEHOP_TRYV(check_loop(o));
  }
  if (has_link(o.part) && o.bytes != 0 && o.omit_seconds > 0)
    return Error{ExitCode::usage, "bench -n with -O", "an amount is counted from its first byte",
                 "Take -t with -O"};
  return success();
}

}  // namespace onehop::bench
