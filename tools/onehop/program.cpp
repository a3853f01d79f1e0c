// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop: one binary, one file per command. This file reads the command line and nothing else.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/law/make_law.hpp"
#include "engine/base/system/descriptors.hpp"
#include "engine/crypto/secret.hpp"

#include "tools/onehop/command/commands.hpp"
#include "tools/onehop/laboratories.hpp"
#include "tools/onehop/privilege.hpp"
#include "tools/onehop/text/encoding.hpp"
#include "tools/onehop/text/help.hpp"
#include "tools/onehop/text/refusal.hpp"
#include "tools/onehop/text/report.hpp"
#include "tools/onehop/text/terminal.hpp"
#if ONEHOP_HAS_P2P
#include "tools/onehop/p2p/p2p_command.hpp"
#endif
#include "control/transfer/settings.hpp"

namespace onehop::tool {
namespace {

/// ConfigFile: what --config names. A JSON object is kept for the law, all else is the parser's
/// TOML.
class ConfigFile : public CLI::ConfigTOML {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    // As a whole: it may be a pipe.
    const std::string text{std::istreambuf_iterator<char>{input}, {}};
    if (!encoding_fault(text).empty()) throw CLI::FileError::Missing("--config");
    const std::size_t begin = text.find_first_not_of(" \t\n\v\f\r");
    if (begin == std::string::npos || text[begin] != '{') {
      std::istringstream options{text};
      return CLI::ConfigTOML::from_config(options);
    }
    law_text_ = text.substr(begin);
    return {};
  }
  [[nodiscard]] const std::string& law_text() const { return law_text_; }

 private:
  mutable std::string law_text_;  // the base class has from_config() const
};

/// take_law_params hands the file's law to both commands, after a look at it.
std::optional<Error> take_law_params(const ConfigFile& config, const CLI::App& app,
                                     std::initializer_list<api::Options*> commands) {
  if (config.law_text().empty()) return std::nullopt;
  const auto file = app.get_config_ptr()->as<std::string>();
  law::LawParams params;
  const auto law = law::read_params(config.law_text(), file, params);
  if (!law.has_value()) return law.error();
  for (api::Options* options : commands) {
    options->law_params = config.law_text();
    options->law_params_name = file;
  }
  return std::nullopt;
}

constexpr const char* config_footer =
    "\n'--config FILE' reads options from a file: see 'onehop --help'.\n"
    "'--help-all' lists options for experiments, too.";

CLI::App* add_send_command(CLI::App& app, SendCommand& send) {
  CLI::App* command =
      app.add_subcommand("send", "send files and folders to a host that runs 'onehop recv'");
  command
      ->add_option("PATH", send.transfer.paths,
                   "files and folders; FOLDER/ sends what the folder holds, without the folder "
                   "itself; - sends standard input under --name")
      ->required();
  command->add_option("--name", send.transfer.stream_name, "what standard input arrives as");
  CLI::Option* to =
      command
          ->add_option("--to", send.transfer.to,
                       "the receiver: an address, or the name that it shows (default: the "
                       "receiver on a link of this machine)")
          ->type_name("HOST[:PORT]");
  add_p2p_options(*command, send.p2p);
  CLI::Option* wait =
      command
          ->add_option("--wait", send.transfer.wait_seconds,
                       "seconds to wait for a receiver that is not there yet, or busy (at a "
                       "terminal and without --to: until one is there)")
          ->check(CLI::Range(0.0, 3600.0))
          ->capture_default_str();
  using Unit = CLI::AsNumberWithUnit;
  command
      ->add_option("--patience", send.transfer.patience_seconds,
                   "wait so long for a receiver that is gone when something has arrived there, and "
                   "go on (90s, 10min, 1h; 0: end at once)")
      ->transform(Unit{std::map<std::string, double>{{"s", 1}, {"min", 60}, {"h", 3600}},
                       Unit::UNIT_OPTIONAL, "TIME"})
      ->envname("ONEHOP_PATIENCE")
      ->default_str("10min");
  send.transfer.patience_seconds = 600;
  command->callback([to, wait, &send] {
    if (send.p2p.is_wanted && !to->empty()) throw CLI::ExcludesError("--p2p", "--to");
    send.has_wait = !wait->empty();
  });
  add_tree_options(*command, send);
  command->add_flag("--hide", send.output.is_code_hidden,
                    "do not show the code while it is typed (the receiver's screen shows it)");
  add_common_options(*command, send.transfer.common, send.output);
  command
      ->add_option("--link-model", send.transfer.common.link_model,
                   "a model of the link publishes its facts to this Unix socket, in place of the "
                   "interface's own")
      ->type_name("FILE")
      ->group("Link");
  command
      ->add_flag("--fragment", send.transfer.has_fragments,
                 "an experiment: datagrams of 64 KB in IP fragments (--io udp), until the path "
                 "loses 0.1 % of its frames")
      ->group("Link");
  command
      ->add_flag("--mac-noack", send.transfer.has_mac_noack,
                 "with --repair lazy on Wi-Fi: no receiver's MAC acknowledges our data frames, "
                 "which get a TID of their own (needs sudo)")
      ->group("Link");
  command->footer(std::string{"Example: onehop send video.mkv Photos --to 192.168.49.1"} +
                  config_footer);
  command->fallthrough();  // so that --config may stand behind the command as well
  return command;
}

CLI::App* add_recv_command(CLI::App& app, RecvCommand& recv) {
  CLI::App* command =
      app.add_subcommand("recv", "receive files that another host sends with 'onehop send'");
  command
      ->add_option("--dir", recv.transfer.directory,
                   "destination folder; - writes the one file of one session to standard output")
      ->type_name("FOLDER")
      ->capture_default_str();
  command
      ->add_option("--listen", recv.transfer.listen,
                   "where to listen (default: all addresses, port 7411)")
      ->type_name("ADDR[:PORT]");
  command->add_flag("--once", recv.transfer.is_once,
                    "end after the first accepted session, with its exit code");
  command->add_option("--on-exist", recv.transfer.on_exist, "what to do about a name that exists")
      ->check(CLI::IsMember(transfer::words_of("--on-exist")))
      ->capture_default_str();
  command
      ->add_option(
          "--durability", recv.transfer.durability,
          "when a file is on the disk: with its name, small ones in batches or each; none: "
          "when the kernel likes, and a power cut may leave a name with any content")
      ->check(CLI::IsMember(transfer::words_of("--durability")))
      ->capture_default_str();
  command->add_flag("--quick", recv.transfer.is_quick,
                    "take a file that is there with the same size and time for the offered one, "
                    "unread (default: compare its content)");
  command->add_flag("--allow-hidden", recv.transfer.is_hidden_allowed,
                    "also take names that begin with a dot");
  command
      ->add_option("--symlinks", recv.transfer.symlinks,
                   "symbolic links: refuse all, or take those that stay below the folder that was "
                   "sent")
      ->check(CLI::IsMember(transfer::words_of("recv --symlinks")))
      ->capture_default_str();
  command->add_flag("--long", recv.transfer.is_code_long,
                    "show a code of 28 letters, which wrong ones never burn, instead of three "
                    "words");
  command->add_flag("--no-space-check", recv.transfer.is_space_unchecked,
                    "do not hold what is offered against the free space and inodes of the disk");
  add_found_options(*command, recv);
  CLI::Option* clean =
      command
          ->add_option("--clean", recv.clean,
                       "receive nothing: remove what interrupted sessions left in this folder and "
                       "below it, and end")
          ->type_name("FOLDER");
  for (const char* name : {"--once", "--dir", "--listen"}) clean->excludes(name);
  add_p2p_option(*command, recv);
  command->add_flag("--dry-run", recv.is_dry_run, "list it, and remove nothing")->needs(clean);
  add_common_options(*command, recv.transfer.common, recv.output);
  add_service_options(*command, recv);
  for (const char* name : {"--law", "--target", "--bounds", "--qcut", "--key-interval"}) {
    CLI::Option* option = command->get_option(name);
    option->description(option->get_description() + "; the sender's counts");
  }
  command->get_option("--digest")
      ->description("digest of blocks and files; sha256 is required of the sender");
  command->footer(std::string{"Example: onehop recv --dir Downloads"} + config_footer);
  command->fallthrough();
  return command;
}

CLI::App* add_doctor_command(CLI::App& app, DoctorOptions& doctor) {
  CLI::App* command =
      app.add_subcommand("doctor", "show what onehop can see and use on this machine");
  command
      ->add_option("--iface", doctor.interface,
                   "network interface to look at (default: all that are up)")
      ->type_name("IF");
  CLI::Option* none =
      command->add_flag("--no-probe{false}", doctor.is_probing,
                        "do not try AF_XDP: it takes the link of some drivers down for a second");
  CLI::Option* probe =
      command
          ->add_flag(
              "--probe", doctor.is_on_spare_queue,
              "try each mode of AF_XDP on the last receive queue alone, with a frame (default: "
              "on all, as send does, without one)")
          ->excludes(none);
  CLI::Option* peer =
      command
          ->add_option(
              "--peer", doctor.peer,
              "try what passes from here to this receiver (a name or an address), and look at "
              "no interface; run it on both machines")
          ->type_name("PEER");
  for (CLI::Option* other : {none, probe}) peer->excludes(other);
  command
      ->add_option("--report", doctor.report_file,
                   "write what was found to this new file, without names and addresses, to be sent "
                   "to us")
      ->type_name("FILE")
      ->excludes(peer);
  command->add_flag("--system-calls", doctor.has_system_calls,
                    "print which system calls send and recv can make once they listen to a peer, "
                    "and look at nothing");
  command->add_flag("--json", doctor.is_json, "one JSON line per interface on standard output");
  return command;
}

/// refuse tells it as the command itself would: where the parser gave up before --json, the words
/// still have it.
int refuse(const CLI::App& app, const Error& error, std::span<char* const> words) {
  const std::string command = words_of(app);
  if (command == "onehop send" || command == "onehop recv") {
    OutputOptions options;
    const std::vector<std::string_view> texts{words.begin(), words.end()};
    const auto options_end = std::ranges::find(texts, "--");  // what follows are names of files
    options.is_json = std::find(texts.begin(), options_end, "--json") != options_end;
    Reporter{options, command.substr(sizeof "onehop")}.error(error);
  } else {
    tell(fitted(command + ": " + error.message() + "\n"));
  }
  return static_cast<int>(error.code);
}

/// Program: the commands, each with its options, and what is read into them.
class Program {
 public:
  Program();
  [[nodiscard]] int run(int argc, char** argv);

 private:
  /// mark_missing says in the help which laboratories are not installed. Only who reads it waits
  /// for the disk.
  void mark_missing();

  CLI::App app_{
      "onehop moves files between two machines that are one hop apart, at the line rate of that "
      "hop.",
      "onehop"};
  std::shared_ptr<ConfigFile> config_ = std::make_shared<ConfigFile>();
  bool is_version_ = false, is_verbose_ = false;
  SendCommand send_;
  RecvCommand recv_;
  DoctorOptions doctor_;
  WatchOptions watch_;
  RingsOptions rings_;
  PairCommand pair_;
  PeersCommand peers_;
  ReceiptCommand receipt_;
#if ONEHOP_HAS_P2P
  p2p::P2pCommand p2p_;
#endif
  std::vector<std::pair<CLI::App*, std::function<int()>>> commands_;  // and what runs each
};

Program::Program() {
  app_.formatter(std::make_shared<Help>());
  app_.set_help_flag("-h,--help", "print this help and exit");
  app_.set_help_all_flag("--help-all", "also list options for experiments");
  app_.require_subcommand(0, 1);
  app_.config_formatter(config_);
  app_.set_config(
          "--config", "",
          "read options (TOML, a section per command) or law parameters (JSON) from this file")
      ->type_name("FILE");
  app_.allow_config_extras(CLI::config_extras_mode::error);
  app_.add_flag("--version", is_version_, "print the version (with -v: what this build can do)");
  app_.add_flag("-v,--verbose", is_verbose_, "with --version: features, and why one is off");
  const auto add = [this](CLI::App* command, auto run) {
    commands_.emplace_back(command, [run] { return static_cast<int>(run()); });
  };
  add(add_send_command(app_, send_), [this] { return send_command(std::move(send_)); });
  add(add_recv_command(app_, recv_), [this] { return recv_command(std::move(recv_)); });
  add(app_.add_subcommand("code", "print a new code of full length, for both ends of a script"),
      [] { return code_command(); });
  add(add_pair_command(app_, pair_), [this] { return pair_command(std::move(pair_)); });
  add(add_peers_command(app_, peers_), [this] { return peers_command(peers_); });
  add(add_receipt_command(app_, receipt_), [this] { return receipt_command(receipt_); });
  add(add_doctor_command(app_, doctor_), [this] { return doctor_command(doctor_); });
  add(add_watch_command(app_, watch_), [this] { return watch_command(watch_); });
  add(add_rings_command(app_, rings_), [this] { return rings_command(rings_); });
#if ONEHOP_HAS_P2P
  add(p2p::add_p2p_command(app_, p2p_), [this] { return p2p_.run(); });
#endif
  // Listed alone: who names one first has become it.
  for (const Laboratory& each : laboratories) {
    const std::string name{each.name};
    CLI::App* command = app_.add_subcommand(name, each.about);
    add(command->group("Laboratories"), [this, name] {
      const Error error{ExitCode::usage, "start it", "other options come before its name",
                        "Write 'onehop " + name + "', and its options then"};
      return refuse(app_, error, {});
    });
  }
  // Last, for commands that are added later would inherit it.
  app_.footer("'onehop COMMAND --help' lists the options of a command.");
}

void Program::mark_missing() {
  for (const Laboratory& each : laboratories) {
    CLI::App* const command = app_.get_subcommand(std::string{each.name});
    if (find_program("onehop-" + command->get_name()).has_error())
      command->description(command->get_description() + " (not installed)");
  }
}

int Program::run(int argc, char** argv) {
  remember_command_line(argc, argv);
  const std::span<char* const> words{argv, static_cast<std::size_t>(argc)};
  try {
    const auto rights = CallerRights::take();  // what sudo gives is not for reading --config
    if (rights.has_error()) return refuse(app_, rights.error(), words);
    app_.parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    mark_missing();
    return app_.exit(asked_for_help);
  } catch (const CLI::ParseError& error) {
    return refuse(app_, refusal_of(app_, error), words);
  }
  if (const auto error =
          take_law_params(*config_, app_, {&send_.transfer.common, &recv_.transfer.common}))
    return refuse(app_, *error, words);
  if (is_version_) return static_cast<int>(version_command(is_verbose_));
  if (!crypto::forbid_core_dumps()) {
    std::fputs(
        "onehop: keep keys out of core dumps: the kernel refuses prctl(PR_SET_DUMPABLE) or "
        "setrlimit(RLIMIT_CORE). Look at the sandbox it runs in\n",
        stderr);
    return static_cast<int>(ExitCode::internal_error);
  }
  if (const auto error = value_fault(app_)) return refuse(app_, *error, words);
  for (OutputOptions* output : {&send_.output, &recv_.output, &pair_.output})
    output->is_verbose |= is_verbose_;
  for (const auto& [command, run_it] : commands_) {
    if (!command->parsed()) continue;
    if (command->get_name() == "send" || command->get_name() == "recv")
      if (const auto raised = raise_descriptor_limit(); raised.has_error())
        return refuse(app_, raised.error(), words);
    return run_it();
  }
  mark_missing();
  std::fputs(app_.help().c_str(), stderr);
  return static_cast<int>(ExitCode::usage);
}

}  // namespace

int run_program(int argc, char** argv) { return Program{}.run(argc, argv); }

}  // namespace onehop::tool
