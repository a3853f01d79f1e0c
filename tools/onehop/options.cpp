// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "control/find/message.hpp"
#include "control/law/make_law.hpp"
#include "control/transfer/settings.hpp"
#include "engine/base/display_name.hpp"

namespace onehop::tool {

namespace {
/// fault_of_name: a name is shown as it is.
std::string fault_of_name(const std::string& name) {
  if (name.size() > find::name_bytes_max)
    return fmt::format("it has {} bytes, and {} at most are shown", name.size(),
                       find::name_bytes_max);
  return display_name(name) == name ? "" : "it has characters that are not shown as they are";
}

void add_output_options(CLI::App& app, api::Options& o, OutputOptions& output) {
  app.option_defaults()->group("Output");
  app.add_option("--trace", o.trace_file, "write one row per control tick to this file (CSV)")
      ->type_name("FILE");
  app.add_option("--receipt", o.receipt_file,
                 "write what was delivered, with digests and a root that both ends have alike, to "
                 "this file (JSON)")
      ->type_name("FILE");
  app.add_option("--report", output.report_file,
                 "write what could not be sent, or has no name at the receiver, and why, to this "
                 "file (JSON)")
      ->type_name("FILE");
  app.add_flag("--files", o.has_all_files,
               "a line with its digest for each file, and an event also for each small one");
  app.add_flag("--json", output.is_json,
               "events as JSON lines on standard output, text on standard error");
  app.add_flag("--quiet", output.is_quiet, "no progress and no summary");
  app.add_flag("-v,--verbose", output.is_verbose,
               "also say why frames leave as they do, how keys were agreed, and at the end where "
               "the CPU time of a byte went");
}

}  // namespace

// The groups are the headings of the help.
void add_common_options(CLI::App& app, api::Options& o, OutputOptions& output) {
  const auto words = [](const char* option) { return CLI::IsMember(transfer::words_of(option)); };
  app.add_option(
         "--code-file", output.code_file,
         "file that holds the code ('-' for standard input; else ONEHOP_CODE, else a prompt)")
      ->type_name("FILE");
  app.add_flag("--remember", output.is_remembered,
               "with --remember at the other end, too, the two devices are paired: from then on "
               "nothing is typed between them");
  app.add_option("--user", output.user,
                 "started as root: whose rights files are touched with (default: who called sudo; "
                 "of a receiver else the folder's owner)")
      ->type_name("NAME");
  CLI::OptionDefaults& defaults = *app.option_defaults();
  defaults.group("Rate");
  app.add_option("--max-rate", o.rate_max,
                 "never faster than this, at either end (600Mbit, 1.5Gbit)")
      ->type_name("RATE");
  app.add_option("--priority", o.priority,
                 "background yields to other traffic (SO_PRIORITY, DSCP CS1)")
      ->check(words("--priority"))
      ->capture_default_str();
  app.add_option("--law", o.law, "rate law: " + law::law_words())
      ->type_name("LAW")
      ->capture_default_str();
  app.add_option("--target", o.target, "where in the safe range the lower queue is held")
      ->check(words("--target"))
      ->capture_default_str();
  app.add_option("--bounds", o.bounds, "rate bounds of the safe range")
      ->check(words("--bounds"))
      ->capture_default_str();
  app.add_flag("--qcut", o.has_qcut, "keep the queue below us short: a gate around the law");
  app.add_option("--repair", o.repair,
                 "eager sends lost data again at once, lazy in rounds (default: eager; the "
                 "receiver follows the sender)")
      ->check(words("--repair"));
  defaults.group("Link");
  app.add_option("--io", o.io, "how frames reach the link; a named one never falls back")
      ->check(words("--io"))
      ->capture_default_str();
  app.add_option("--xdp-mode", o.xdp_mode,
                 "AF_XDP mode, with --io afxdp; a named one never falls back")
      ->check(words("--xdp-mode"))
      ->capture_default_str();
  app.add_option(
         "--eal", o.eal,
         "arguments of DPDK's EAL in one string, for --io dpdk (\"--vdev=net_memif0,role=client\")")
      ->type_name("ARGS");
  app.add_option("--iface", o.interface,
                 "network interface to use (default: the route to the peer)")
      ->type_name("IF");
  app.add_option("--frame-size", o.frame_bytes,
                 "UDP payload of a full frame in bytes (default: what the MTU allows)")
      ->check(CLI::Range(512, 65000));
  app.add_option("--poll", o.poll, "adaptive sleeps between bursts, busy owns its core")
      ->check(words("--poll"))
      ->capture_default_str();
  app.add_option("--core", o.core, "CPU for the engine thread")->type_name("N");
  app.add_option("--key-interval", o.key_interval_packets, "packets per data key, a power of two")
      ->check(CLI::Range(256, 1 << 22))
      ->capture_default_str();
  defaults.group("Files");
  app.add_option("--digest", o.digest,
                 "digest of blocks and files; a --receipt at either end makes it sha256")
      ->check(words("--digest"))
      ->capture_default_str();
  app.add_option("--file-io", o.file_io, "how files are read and written")
      ->check(words("--file-io"))
      ->capture_default_str();
  app.add_option("--direct-io", o.direct_io,
                 "large files past the page cache: when they would fill it, always, or never")
      ->check(words("--direct-io"))
      ->capture_default_str();
  add_output_options(app, o, output);
  defaults.group("Options");
}

void add_tree_options(CLI::App& app, SendCommand& send) {
  const auto add = [&](const char* option, ExcludeWord::Kind kind, const char* type,
                       const char* words) {
    app.add_option_function<std::string>(
           option,
           [&send, kind](const std::string& text) {
             send.excludes.push_back({kind, text});
           },
           words)
        ->type_name(type)
        ->trigger_on_parse()
        ->group("Folders");
  };
  using Kind = ExcludeWord::Kind;
  add("--exclude", Kind::exclude, "PATTERN",
      "leave out what matches, as a line of .gitignore would; may be repeated, and the last of "
      "these options that matches decides");
  add("--include", Kind::include, "PATTERN",
      "take what matches, though an earlier --exclude leaves it out");
  add("--exclude-from", Kind::file, "FILE", "patterns, one a line, as in .gitignore");
  app.add_flag("--one-file-system", send.transfer.is_one_file_system,
               "stay on the file system of each PATH")
      ->group("Folders");
  app.add_option("--symlinks", send.transfer.symlinks,
                 "links in a folder: leave them out, send nothing, send them as links that stay "
                 "within PATH, or send the file that one leads to within PATH")
      ->check(CLI::IsMember(transfer::words_of("--symlinks")))
      ->capture_default_str()
      ->group("Folders");
  app.add_flag("--dry-run", send.is_dry_run,
               "list what would be sent and what would not, and send nothing")
      ->group("Folders");
}

void add_found_options(CLI::App& app, RecvCommand& recv) {
  app.add_option("--name", recv.name, "the name that senders on the link see (default: the host's)")
      ->check(CLI::Validator{[](std::string& name) { return fault_of_name(name); }, "NAME"});
  app.add_flag("--hidden", recv.is_hidden,
               "do not answer senders that look for receivers; they need the address");
}

void add_service_options(CLI::App& app, RecvCommand& recv) {
  constexpr const char* group = "Service";
  api::ReceiveOptions& transfer = recv.transfer;
  CLI::Option* service =
      app.add_flag(
             "--service", transfer.is_service,
             "receive from paired devices alone, several at once, and ask by notifications alone")
          ->group(group);
  const auto add = [&](const char* name, auto& value, const char* about, const char* type) {
    return app.add_option(name, value, about)->type_name(type)->needs(service)->group(group);
  };
  add("--sessions", recv.sessions, "how many at once", "N")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  add("--quota", transfer.quota_bytes,
      "what the folder of a device may hold (20GB, 500MiB), unless 'onehop peers set NAME --quota' "
      "says otherwise",
      "SIZE")
      ->transform(CLI::AsSizeValue(true));
  add("--on-received", recv.service.on_received,
      "run this program after each session that brought files, without a shell; who sent what is "
      "in its environment (ONEHOP_*)",
      "PROGRAM");
  add("--metrics", recv.service.metrics_file,
      "write what was received since the start to this file (OpenMetrics text)", "FILE");
  // What one session has, or what a person does.
  for (const char* name : {"--once", "--code-file", "--long", "--remember", "--receipt", "--trace",
                           "--report", "--clean", "--p2p"})
    if (CLI::Option* const other = app.get_option_no_throw(name)) service->excludes(other);
}

void add_p2p_options([[maybe_unused]] CLI::App& app, [[maybe_unused]] P2pChoice& choice) {
#if ONEHOP_HAS_P2P
  CLI::Option* p2p = app.add_flag("--p2p", choice.is_wanted,
                                  "form a Wi-Fi Direct group with a machine that runs 'onehop recv "
                                  "--p2p', send, and leave it; in place of --to")
                         ->group("Wi-Fi Direct");
  app.add_option("--peer", choice.peer,
                 "the other machine's name or address, as 'onehop p2p find' lists it (default: the "
                 "only one)")
      ->type_name("PEER")
      ->needs(p2p)
      ->group("Wi-Fi Direct");
#endif
}

void add_p2p_option([[maybe_unused]] CLI::App& app, [[maybe_unused]] RecvCommand& recv) {
#if ONEHOP_HAS_P2P
  app.add_flag("--p2p", recv.is_p2p,
               "make a Wi-Fi Direct group, which machines without Wi-Fi Direct join by the "
               "passphrase that is shown; receive one session, and end the group")
      ->excludes("--clean")
      ->excludes("--listen")
      ->group("Wi-Fi Direct");
#endif
}

}  // namespace onehop::tool
