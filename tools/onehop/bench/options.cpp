// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/bench/options.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>

#include "control/law/make_law.hpp"
#include "engine/base/rate_text.hpp"
#include "engine/crypto/aead.hpp"
#include "engine/wire/frame.hpp"

namespace onehop::bench {

namespace {

constexpr int rounds_max = 1000;
constexpr double seconds_max = 3600;
constexpr int parallel_max = 16;

bool has_link(Part part) { return part == Part::loop || part == Part::serve || part == Part::port; }
bool is_session(Part part) { return part == Part::loop || part == Part::serve; }

/// refuse puts an option of iperf3's in, only to say why it is none of ours.
void refuse(CLI::App& command, const std::string& name, const std::string& why, bool takes_value) {
  const auto say = [shown = name.substr(name.find("--")), why] { throw CLI::ValidationError{shown, why}; };
  if (takes_value) command.add_option_function<std::string>(name, [say](const std::string&) { say(); }, "")->group("");
  else command.add_flag_callback(name, say)->group("");
}

template <class T>
CLI::Option* add_list(CLI::App& command, const char* name, std::vector<T>& values, const char* text) {
  CLI::Option* option = command.add_option(name, values, text)->delimiter(',');
  return values.empty() ? option : option->capture_default_str();
}

void add_sweeps(CLI::App& command, BenchOptions& o) {
  const bool is_loop = is_session(o.part), is_port = o.part == Part::port;
  if (has_link(o.part)) {
    add_list(command, "--io", o.io, "ports: udp, afxdp, afxdp:zero-copy, afxdp:copy, afxdp:skb, dpdk")->type_name("PORT");
    add_list(command, "--poll", o.poll, "adaptive sleeps between bursts, busy owns its core")->check(CLI::IsMember({"adaptive", "busy"}));
    if (o.part != Part::serve) add_list(command, "--rate", o.rate, "flood, or the rate in bit/s (600Mbit)")->type_name("RATE");
  }
  if (has_link(o.part) || o.part == Part::aead)
    add_list(command, "--frame-size", o.frame_bytes, "UDP payload of a full frame in bytes; 0: what the MTU allows")->check(CLI::Range(0, 65000));
  if (is_port) {
    add_list(command, "--burst", o.burst_frames, "frames per doorbell")->check(CLI::Range(1, 1024));
    command.add_option("--window", o.window_frames, "frames on their way at most; 0: an open flood, which loses")->check(CLI::Range(0, 65536))->capture_default_str();
  }
  if (is_loop || o.part == Part::aead)
    add_list(command, "--aead", o.aead, "who encrypts")->check(CLI::IsMember({"auto", "ipsec-mb", "openssl"}));
  if (is_loop || o.part == Part::digest)
    add_list(command, "--digest", o.digest, is_loop ? "digest of blocks and files; none is for memory to memory" : "digest of blocks")
        ->check(is_loop ? CLI::IsMember({"xxh3", "sha256", "none"}) : CLI::IsMember({"xxh3", "sha256"}));
  if (is_loop || o.part == Part::file)
    add_list(command, "--file-io", o.file_io, "how files are read and written")->check(CLI::IsMember({"auto", "io_uring", "threads"}));
  if (o.part == Part::loop || o.part == Part::law) add_list(command, "--law", o.law, "rate laws")->type_name("LAW");
}

/// A loop between two hosts, each with one end of it.
void add_hosts(CLI::App& command, BenchOptions& o) {
  if (o.part == Part::loop) command.add_option("--to", o.to, "the host that runs 'onehop bench serve', in place of a lab")->type_name("HOST[:PORT]");
  else command.add_option("--listen", o.listen, "where to listen (default: all addresses, port 7411)")->type_name("ADDR[:PORT]");
  command.add_option("--iface", o.interface, "network interface to use (default: the route to the peer)")->type_name("IF");
  command.add_option("--code-file", o.code_file, "file that holds the code of both ends ('-' for standard input; else ONEHOP_CODE, else a prompt)")->type_name("FILE");
}

void add_serve(CLI::App& command, BenchOptions& o) {
  command.add_option("--sink", o.sink, "where the bytes go to")->check(CLI::IsMember({"memory", "file"}))->capture_default_str();
  command.add_option("--dir", o.folder, "folder of the files; /dev/shm is tmpfs")->type_name("FOLDER")->capture_default_str();
  command.add_option("-i,--interval", o.interval_seconds, "seconds between reports within a session; 0: none")->check(CLI::Range(0.0, seconds_max));
  command.add_option("-A,--affinity", o.affinity, "CPU of this end")->type_name("N");
  add_hosts(command, o);
}

void add_run(CLI::App& command, BenchOptions& o) {
  if (o.part == Part::serve) return add_serve(command, o);
  const bool is_loop = o.part == Part::loop;
  command.add_option("-t,--time", o.seconds, "seconds per run")->check(CLI::Range(0.01, seconds_max))->capture_default_str();
  if (has_link(o.part)) {
    command.add_option("--eal", o.eal, "arguments for DPDK, with --io dpdk; {iface}, {role} (client, server) and {socket} stand for what each end has")->type_name("ARGS");
    command.add_option("--profile", o.profile, "lab link (a file of configs/lab)")->type_name("NAME")->capture_default_str();
    command.add_option("--mtu", o.mtu_bytes, "MTU of the lab link (default: as the profile has it)")->check(CLI::Range(576, 65535));
    command.add_option("-n,--bytes", o.amount, "bytes per run in place of a time (512M, 2G)")->type_name("BYTES")->excludes("--time");
    command.add_option("-O,--omit", o.omit_seconds, "seconds left out at the start of each run")->check(CLI::Range(0.0, seconds_max));
    command.add_option("-i,--interval", o.interval_seconds, "seconds between reports within a run; 0: none")->check(CLI::Range(0.0, seconds_max));
    command.add_option("-P,--parallel", o.parallel, "sessions side by side (udp)")->check(CLI::Range(1, parallel_max));
    command.add_flag("-R,--reverse", o.is_reverse, "from host b to host a");
    command.add_flag("--bidir", o.is_both_ways, "both ways at once (udp)");
    command.add_option("-A,--affinity", o.affinity, "CPU of the sending end[,of the receiving end]")->type_name("N[,M]");
  } else {
    for (const char* name : {"-P,--parallel", "-i,--interval", "-O,--omit", "-A,--affinity"})
      refuse(command, name, "a part is measured on one thread, without a link", true);
    for (const char* name : {"-R,--reverse", "--bidir"}) refuse(command, name, "a part has no direction", false);
    if (o.part == Part::file) command.add_option("-n,--bytes", o.amount, "bytes per run (default: 256M)")->type_name("BYTES");
    else refuse(command, "-n,--bytes", "a part is measured for a time: take -t", true);
  }
  refuse(command, "-u,--udp", "there is no choice between TCP and UDP: see --io", false);
  refuse(command, "-b,--bitrate", "take --rate, which sweeps", true);
  if (is_loop || o.part == Part::file)
    command.add_option("--dir", o.folder, "folder of the files; /dev/shm is tmpfs")->type_name("FOLDER")->capture_default_str();
  if (!is_loop) return;
  command.add_option("--source", o.source, "where the bytes come from")->check(CLI::IsMember({"memory", "file"}))->capture_default_str();
  command.add_option("--sink", o.sink, "where the bytes go to")->check(CLI::IsMember({"memory", "file"}))->capture_default_str();
  add_hosts(command, o);
  command.add_option("--peers", o.peers, "(--baseline quinn, s2n-quic) folder that tools/quic-peers built into (default: ~/.cache/onehop/peers)")->type_name("FOLDER");
  command.add_flag("--parts", o.has_parts, "measure the parts in the same rounds, and how well they add up");
}

void add_report(CLI::App& command, BenchOptions& o) {
  command.add_option("-r,--rounds", o.rounds, "repetitions; the points of a sweep take turns")->check(CLI::Range(1, rounds_max))->capture_default_str();
  const std::string programs = o.part == Part::loop ? "iperf3-tcp, iperf3-udp, quinn, s2n-quic, or " : o.part == Part::port ? "iperf3-tcp, iperf3-udp, or " : "";
  command.add_option("--baseline", o.baseline, "what ratios are to: " + programs + "a point's name")->type_name("NAME");
  command.add_flag("--json,--json-stream", o.is_json, "events as JSON lines on standard output");
  command.add_flag("-J", o.is_document, "one JSON document on standard output");
  command.add_flag("--quiet", o.is_quiet, "no progress");
}

Result<void> check_affinity(BenchOptions& o) {
  const auto bad = [&](const char* cause) {
    return Error{ExitCode::usage, "read -A " + o.affinity, cause, "Write N or N,M: CPUs from 0"};
  };
  std::string_view text = o.affinity;
  int index = 0;
  while (!text.empty()) {
    int cpu = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
    if (error != std::errc{} || cpu < 0 || index > 1) return bad("it is not one or two CPU numbers");
    (index++ == 0 ? o.sender_cpu : o.receiver_cpu) = cpu;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) break;
    if (text.front() != ',' || text.size() == 1) return bad("it is not one or two CPU numbers");
    text.remove_prefix(1);
  }
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return errno_error(ExitCode::internal_error, "read the CPUs this process may use");
  for (const std::optional<int>& cpu : {o.sender_cpu, o.receiver_cpu})
    if (cpu && (*cpu >= CPU_SETSIZE || !CPU_ISSET(static_cast<unsigned>(*cpu), &allowed)))
      return Error{ExitCode::usage, "take -A " + o.affinity, "this process may not run on CPU " + std::to_string(*cpu), "Choose one that 'taskset -cp $$' lists"};
  return success();
}

Result<void> check_hosts(const BenchOptions& o) {
  const auto refuse = [](const char* what, const char* why, const char* hint) { return Error{ExitCode::usage, std::string{"bench loop --to with "} + what, why, hint}; };
  if (o.bytes == 0) return refuse("a time", "both ends must know when it is over", "Name an amount with -n, for example -n 1G");
  if (o.has_parts) return refuse("--parts", "a flood's two ends share memory", "Leave --to out: --parts takes a lab");
  if (o.parallel > 1 || o.is_both_ways || o.is_reverse) return refuse("-P, -R or --bidir", "the other host runs one receiving end", "Leave them out, or take a lab");
  if (o.baseline.starts_with("iperf3")) return refuse("--baseline " , "iperf3 is started in a lab only", "Leave --to out");
  if (is_quic(o.baseline)) return refuse("--baseline", "QUIC's programs are started in a lab only", "Leave --to out");
  return success();
}

/// QUIC's programs send one stream one way, as fast as they can.
Result<void> check_quic(const BenchOptions& o) {
  if (!is_quic(o.baseline)) {
    if (o.peers.empty()) return success();
    return Error{ExitCode::usage, "bench loop --peers", "nothing of it is measured", "Add --baseline quinn or --baseline s2n-quic"};
  }
  const bool is_paced = std::ranges::any_of(o.rate, [](const std::string& rate) { return rate != "flood"; });
  if (o.parallel == 1 && !o.is_both_ways && !is_paced) return success();
  return Error{ExitCode::usage, "bench loop --baseline " + o.baseline + " with -P, --bidir or --rate", "its program sends one stream one way, as fast as it can",
               "Leave them out, or take --baseline iperf3-tcp"};
}

/// A session's frames are at least those that `onehop send --frame-size` takes, a flood's carry at least their seal.
Result<void> check_frames(const BenchOptions& o) {
  constexpr std::size_t session_bytes_min = 512;
  const std::size_t least = is_session(o.part) ? session_bytes_min : o.part == Part::port ? wire::overhead_bytes + 1 : 1;
  for (const std::size_t bytes : o.frame_bytes)
    if (bytes != 0 && bytes < least)
      return Error{ExitCode::usage, "take frames of " + std::to_string(bytes) + " bytes (--frame-size)",
                   "bench " + std::string{name_of(o.part)} + " takes " + std::to_string(least) + " or more", "Take larger ones, or 0 for what the MTU allows"};
  return success();
}

Result<void> check_loop(const BenchOptions& o) {
  if (!o.to.empty()) { ONEHOP_TRYV(check_hosts(o)); }
  ONEHOP_TRYV(check_quic(o));
  if (o.to.empty() && (!o.interface.empty() || !o.code_file.empty()))
    return Error{ExitCode::usage, "bench loop", "--iface and --code-file are for two hosts", "Add --to HOST, or leave them out"};
  const bool has_file = o.source == "file" || o.sink == "file";
  if (has_file && o.bytes == 0)
    return Error{ExitCode::usage, "bench loop", "a file has a size, not a time", "Name the size with -n, for example -n 1G"};
  for (const std::string& digest : o.digest)
    if (has_file && digest == "none")
      return Error{ExitCode::usage, "bench loop --digest none", "files are always digested", "Take --source memory --sink memory, or another digest"};
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
  const Error bad{ExitCode::usage, "read the amount '" + text + "'", "it is not a number of bytes", "Write 1000000, 512M or 2G"};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number <= 0) return bad;
  const std::string_view unit{end, static_cast<std::size_t>(text.data() + text.size() - end)};
  constexpr std::string_view units = "KMGT";
  if (unit.size() > 1) return bad;
  if (!unit.empty()) {
    const std::size_t at = units.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit.front()))));
    if (at == std::string_view::npos) return bad;
    number *= static_cast<double>(std::uint64_t{1} << (10 * (at + 1)));
  }
  if (number < 1 || number > 1e15) return bad;
  return static_cast<std::uint64_t>(number);
}

Result<IoChoice> parse_io(const std::string& text) {
  const std::size_t colon = text.find(':');
  const IoChoice choice{text.substr(0, colon), colon == std::string::npos ? "auto" : text.substr(colon + 1)};
  const bool is_known = choice.io == "udp" || choice.io == "afxdp" || choice.io == "dpdk";
  const bool is_mode = choice.mode == "auto" || (choice.io == "afxdp" && (choice.mode == "zero-copy" || choice.mode == "copy" || choice.mode == "skb"));
  if (is_known && is_mode) return choice;
  return Error{ExitCode::usage, "take --io " + text, is_known ? "it has no such mode" : "there is no such port",
               "Take udp, afxdp, afxdp:zero-copy, afxdp:copy, afxdp:skb or dpdk"};
}

/// What a sweep that was not given goes over.
static void set_defaults(BenchOptions& o) {
  if (o.frame_bytes.empty()) o.frame_bytes = o.part == Part::aead ? std::vector<std::size_t>{1472, 3472, 8972} : std::vector<std::size_t>{0};
  if (o.digest.empty()) o.digest = o.part == Part::digest ? std::vector<std::string>{"xxh3", "sha256"} : std::vector<std::string>{"xxh3"};
  if (o.law.empty()) o.law = o.part == Part::law ? std::vector<std::string>{"auto", "safe-range", "wdtcp", "cupid"} : std::vector<std::string>{"auto"};
  if (!o.aead.empty()) return;
  if (o.part == Part::aead && crypto::is_available(crypto::AeadBackend::ipsec_mb)) o.aead = {"ipsec-mb", "openssl"};
  else o.aead = {o.part == Part::aead ? "openssl" : "auto"};
}

Result<void> check_options(BenchOptions& o) {
  set_defaults(o);
  if (o.is_json && o.is_document)
    return Error{ExitCode::usage, "bench", "--json and -J are two forms of one output", "Take one of them"};
  if (!o.amount.empty()) {
    ONEHOP_TRY(bytes, parse_amount(o.amount));
    o.bytes = bytes;
  }
  ONEHOP_TRYV(check_affinity(o));
  for (const std::string& rate : o.rate)
    if (rate != "flood") { ONEHOP_TRYV(parse_rate(rate)); }
  if (o.part == Part::loop || o.part == Part::law)
    for (const std::string& law : o.law) { ONEHOP_TRYV(law::make_law({.spec = law})); }
  if (!o.eal.empty() && !std::ranges::any_of(o.io, [](const std::string& io) { return io == "dpdk"; }))
    return Error{ExitCode::usage, "bench --eal", "it is for --io dpdk", "Add dpdk to --io, or leave --eal out"};
  ONEHOP_TRYV(check_frames(o));
  const bool is_crowded = o.parallel > 1 || o.is_both_ways;
  for (const std::string& io : o.io) {
    ONEHOP_TRY(choice, parse_io(io));
    if (is_crowded && choice.io != "udp")
      return Error{ExitCode::usage, "bench --io " + io + " with -P or --bidir", "a queue of the interface belongs to one process", "Take --io udp"};
  }
  if (o.is_reverse && o.is_both_ways) return Error{ExitCode::usage, "bench", "-R and --bidir exclude each other", "Take one of them"};
  if (o.part == Part::loop) { ONEHOP_TRYV(check_loop(o)); }
  if (has_link(o.part) && o.bytes != 0 && o.omit_seconds > 0)
    return Error{ExitCode::usage, "bench -n with -O", "an amount is counted from its first byte", "Take -t with -O"};
  return success();
}

void add_bench_command(CLI::App& app, BenchOptions& options) {
  CLI::App* bench = app.add_subcommand("bench", "measure what moving a byte costs, as a whole and by its parts");
  bench->require_subcommand(1);
  const auto add = [&](Part part, CLI::App* command) {
    options.part = part;  // what its options are
    add_sweeps(*command, options);
    add_run(*command, options);
    add_report(*command, options);
    command->callback([&options, part] {
      options.part = part;
      options.is_parsed = true;
    });
  };
  add(Part::loop, bench->add_subcommand("loop", "a whole transfer: two processes, real engine, over a lab link (root)"));
  add(Part::serve, bench->add_subcommand("serve", "the receiving end of 'bench loop --to', on another host"));
  add(Part::port, bench->add_subcommand("port", "frames alone: copied into the port and out of it, no encryption (root)"));
  add(Part::aead, bench->add_subcommand("aead", "sealing and opening frames"));
  add(Part::digest, bench->add_subcommand("digest", "digests of blocks"));
  add(Part::file, bench->add_subcommand("file", "reading and writing a file as the engine does"));
  add(Part::law, bench->add_subcommand("law", "one control tick of a rate law"));
  add(Part::ring, bench->add_subcommand("ring", "the rings between the threads"));
}

}  // namespace onehop::bench
