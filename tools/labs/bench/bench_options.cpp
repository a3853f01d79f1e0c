// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The options of `onehop bench`, as a command line has them; options.cpp checks what they say.
#include <CLI/CLI.hpp>

#include "control/law/make_law.hpp"
#include "engine/crypto/aead.hpp"
#include "engine/disk/file_io.hpp"
#include "tools/labs/bench/options.hpp"
#include "tools/onehop/laboratories.hpp"

namespace onehop::bench {

namespace {

constexpr int rounds_max = 1000;
constexpr double seconds_max = 3600;
constexpr int parallel_max = 16;

/// refuse puts an option of iperf3's in, only to say why it is none of ours.
void refuse(CLI::App& command, const std::string& name, const std::string& why, bool takes_value) {
  const auto say = [shown = name.substr(name.find("--")), why] {
    throw CLI::ValidationError{shown, why};
  };
  if (takes_value)
    command
        .add_option_function<std::string>(
            name, [say](const std::string&) { say(); }, "")
        ->group("");
  else
    command.add_flag_callback(name, say)->group("");
}

template <class T>
CLI::Option* add_list(CLI::App& command, const char* name, std::vector<T>& values,
                      const char* text) {
  CLI::Option* option = command.add_option(name, values, text)->delimiter(',');
  return values.empty() ? option : option->capture_default_str();
}

void add_sweeps(CLI::App& command, BenchOptions& o) {
  const bool is_loop = is_session(o.part), is_port = o.part == Part::port;
  if (has_link(o.part)) {
    add_list(command, "--io", o.io,
             "ports: udp, afxdp, afxdp:zero-copy, afxdp:copy, afxdp:skb, dpdk")
        ->type_name("PORT");
    add_list(command, "--poll", o.poll, "adaptive sleeps between bursts, busy owns its core")
        ->check(CLI::IsMember({"adaptive", "busy"}));
    if (o.part != Part::serve)
      add_list(command, "--rate", o.rate, "flood, or the rate in bit/s (600Mbit)")
          ->type_name("RATE");
  }
  if (has_link(o.part) || o.part == Part::aead)
    add_list(command, "--frame-size", o.frame_bytes,
             "UDP payload of a full frame in bytes; 0: what the MTU allows")
        ->check(CLI::Range(0, 65000));
  if (is_port) {
    add_list(command, "--burst", o.burst_frames, "frames per doorbell")->check(CLI::Range(1, 1024));
    command
        .add_option("--window", o.window_frames,
                    "frames on their way at most; 0: an open flood, which loses")
        ->check(CLI::Range(0, 65536))
        ->capture_default_str();
  }
  if (is_loop || o.part == Part::aead)
    add_list(command, "--aead", o.aead, "who encrypts")
        ->check(CLI::IsMember({"auto", "ipsec-mb", "openssl", "chacha20"}));
  if (is_loop || o.part == Part::digest)
    add_list(
        command, "--digest", o.digest,
        is_loop ? "digest of blocks and files; none is for memory to memory" : "digest of blocks")
        ->check(is_loop ? CLI::IsMember({"xxh3", "sha256", "none"})
                        : CLI::IsMember({"xxh3", "sha256"}));
  if (is_loop || o.part == Part::file)
    add_list(command, "--file-io", o.file_io, "how files are read and written")
        ->check(CLI::IsMember(disk::file_io_names()));
  if (o.part == Part::loop || o.part == Part::law)
    add_list(command, "--law", o.law, "rate laws")->type_name("LAW");
}

/// A loop between two hosts, each with one end of it.
void add_hosts(CLI::App& command, BenchOptions& o) {
  if (o.part == Part::loop)
    command.add_option("--to", o.to, "the host that runs 'onehop bench serve', in place of a lab")
        ->type_name("HOST[:PORT]");
  else
    command.add_option("--listen", o.listen, "where to listen (default: all addresses, port 7411)")
        ->type_name("ADDR[:PORT]");
  command
      .add_option("--iface", o.interface,
                  "network interface to use (default: the route to the peer)")
      ->type_name("IF");
  command
      .add_option("--code-file", o.code_file,
                  "file that holds the code of both ends ('-' for standard input; else "
                  "ONEHOP_CODE, else a prompt)")
      ->type_name("FILE");
}

void add_serve(CLI::App& command, BenchOptions& o) {
  command.add_option("--sink", o.sink, "where the bytes go to")
      ->check(CLI::IsMember({"memory", "file"}))
      ->capture_default_str();
  command.add_option("--dir", o.folder, "folder of the files; /dev/shm is tmpfs")
      ->type_name("FOLDER")
      ->capture_default_str();
  command
      .add_option("-i,--interval", o.interval_seconds,
                  "seconds between reports within a session; 0: none")
      ->check(CLI::Range(0.0, seconds_max));
  command.add_option("-A,--affinity", o.affinity, "CPU of this end")->type_name("N");
  add_hosts(command, o);
}

void add_run(CLI::App& command, BenchOptions& o) {
  if (o.part == Part::serve) return add_serve(command, o);
  const bool is_loop = o.part == Part::loop;
  command.add_option("-t,--time", o.seconds, "seconds per run")
      ->check(CLI::Range(0.01, seconds_max))
      ->capture_default_str();
  if (has_link(o.part)) {
    command
        .add_option("--eal", o.eal,
                    "arguments for DPDK, with --io dpdk; {iface}, {role} (client, server) and "
                    "{socket} stand for what each end has")
        ->type_name("ARGS");
    command.add_option("--profile", o.profile, "lab link (a file of configs/lab)")
        ->type_name("NAME")
        ->capture_default_str();
    command
        .add_option("--mtu", o.mtu_bytes, "MTU of the lab link (default: as the profile has it)")
        ->check(CLI::Range(576, 65535));
    command.add_option("-n,--bytes", o.amount, "bytes per run in place of a time (512M, 2G)")
        ->type_name("BYTES")
        ->excludes("--time");
    command.add_option("-O,--omit", o.omit_seconds, "seconds left out at the start of each run")
        ->check(CLI::Range(0.0, seconds_max));
    command
        .add_option("-i,--interval", o.interval_seconds,
                    "seconds between reports within a run; 0: none")
        ->check(CLI::Range(0.0, seconds_max));
    command.add_option("-P,--parallel", o.parallel, "sessions side by side (udp)")
        ->check(CLI::Range(1, parallel_max));
    command.add_flag("-R,--reverse", o.is_reverse, "from host b to host a");
    command.add_flag("--bidir", o.is_both_ways, "both ways at once (udp)");
    command
        .add_option("-A,--affinity", o.affinity, "CPU of the sending end[,of the receiving end]")
        ->type_name("N[,M]");
  } else {
    for (const char* name : {"-P,--parallel", "-i,--interval", "-O,--omit", "-A,--affinity"})
      refuse(command, name, "a part is measured on one thread, without a link", true);
    for (const char* name : {"-R,--reverse", "--bidir"})
      refuse(command, name, "a part has no direction", false);
    if (o.part == Part::file)
      command.add_option("-n,--bytes", o.amount, "bytes per run (default: 256M)")
          ->type_name("BYTES");
    else
      refuse(command, "-n,--bytes", "a part is measured for a time: take -t", true);
  }
  refuse(command, "-u,--udp", "there is no choice between TCP and UDP: see --io", false);
  refuse(command, "-b,--bitrate", "take --rate, which sweeps", true);
  if (is_loop || o.part == Part::file)
    command.add_option("--dir", o.folder, "folder of the files; /dev/shm is tmpfs")
        ->type_name("FOLDER")
        ->capture_default_str();
  if (!is_loop) return;
  command.add_option("--source", o.source, "where the bytes come from")
      ->check(CLI::IsMember({"memory", "file"}))
      ->capture_default_str();
  command.add_option("--sink", o.sink, "where the bytes go to")
      ->check(CLI::IsMember({"memory", "file"}))
      ->capture_default_str();
  add_hosts(command, o);
  command
      .add_option(
          "--peers", o.peers,
          "(--baseline quinn, s2n-quic) folder that tools/measure/quic-peers built into (default: "
          "~/.cache/onehop/peers)")
      ->type_name("FOLDER");
  command.add_flag("--parts", o.has_parts,
                   "measure the parts in the same rounds, and how well they add up");
}

void add_report(CLI::App& command, BenchOptions& o) {
  command.add_option("-r,--rounds", o.rounds, "repetitions; the points of a sweep take turns")
      ->check(CLI::Range(1, rounds_max))
      ->capture_default_str();
  const std::string programs = o.part == Part::loop ? "iperf3-tcp, iperf3-udp, quinn, s2n-quic, or "
                               : o.part == Part::port ? "iperf3-tcp, iperf3-udp, or "
                                                      : "";
  command
      .add_option("--baseline", o.baseline, "what ratios are to: " + programs + "a point's name")
      ->type_name("NAME");
  command.add_flag("--json,--json-stream", o.is_json, "events as JSON lines on standard output");
  command.add_flag("-J", o.is_document, "one JSON document on standard output");
  command.add_flag("--quiet", o.is_quiet, "no progress");
}

}  // namespace

CLI::App* add_bench_command(CLI::App& app, BenchOptions& options) {
  CLI::App* bench = app.add_subcommand("bench", tool::find_laboratory("bench")->about);
  bench->require_subcommand(1);
  const auto add = [&](Part part, CLI::App* command) {
    options.part = part;  // what its options are
    add_sweeps(*command, options);
    add_run(*command, options);
    add_report(*command, options);
    command->callback([&options, part] { options.part = part; });
  };
  add(Part::loop,
      bench->add_subcommand(
          "loop", "a whole transfer: two processes, real engine, over a lab link (root)"));
  add(Part::serve,
      bench->add_subcommand("serve", "the receiving end of 'bench loop --to', on another host"));
  add(Part::port,
      bench->add_subcommand(
          "port", "frames alone: copied into the port and out of it, no encryption (root)"));
  add(Part::aead, bench->add_subcommand("aead", "sealing and opening frames"));
  add(Part::digest, bench->add_subcommand("digest", "digests of blocks"));
  add(Part::file, bench->add_subcommand("file", "reading and writing a file as the engine does"));
  add(Part::law, bench->add_subcommand("law", "one control tick of a rate law"));
  add(Part::ring, bench->add_subcommand("ring", "the rings between the threads"));
  return bench;
}

}  // namespace onehop::bench
