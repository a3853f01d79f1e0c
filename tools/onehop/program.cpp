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
  std::function<void()> before_sections;  ///< called before options are looked up for a section

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    // As a whole: it may be a pipe.
    const std::string text{std::istreambuf_iterator<char>{input}, {}};
    if (!encoding_fault(text).empty()) throw CLI::FileError::Missing("--config");
    const std::size_t begin = text.find_first_not_of(" \t\n\v\f\r");
    if (begin == std::string::npos || text[begin] != '{') {
      std::istringstream options{text};
      before_sections();
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

void add_doctor_options(CLI::App& command, DoctorOptions& doctor) {
  command
      .add_option("--iface", doctor.interface,
                  "network interface to look at (default: all that are up)")
      ->type_name("IF");
  CLI::Option* none =
      command.add_flag("--no-probe{false}", doctor.is_probing,
                       "do not try AF_XDP: it takes the link of some drivers down for a second");
  CLI::Option* probe =
      command
          .add_flag(
              "--probe", doctor.is_on_spare_queue,
              "try each mode of AF_XDP on the last receive queue alone, with a frame (default: "
              "on all, as send does, without one)")
          ->excludes(none);
  CLI::Option* peer =
      command
          .add_option(
              "--peer", doctor.peer,
              "try what passes from here to this receiver (a name or an address), and look at "
              "no interface; run it on both machines")
          ->type_name("PEER");
  for (CLI::Option* other : {none, probe}) peer->excludes(other);
  command
      .add_option("--report", doctor.report_file,
                  "write what was found to this new file, without names and addresses, to be sent "
                  "to us")
      ->type_name("FILE")
      ->excludes(peer);
  command.add_flag("--system-calls", doctor.has_system_calls,
                   "print which system calls send and recv can make once they listen to a peer, "
                   "and look at nothing");
  command.add_flag("--json", doctor.is_json, "one JSON line per interface on standard output");
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
  /// Command: its options are made when it is named on the command line. Each start would wait for
  /// those of all others.
  struct Command {
    CLI::App* app;
    std::function<void(CLI::App&)> options;  ///< empty: they are made, or there are none
    std::function<ExitCode()> run;

    void make_options() {
      if (const auto make = std::exchange(options, nullptr)) make(*app);
    }
  };
  Command& add(const char* name, const char* about, std::function<ExitCode()> command);
  /// add of a command whose options are read into `state`.
  template <class State>
  void add(const char* name, const char* about, void (*options)(CLI::App&, State&), State& state,
           auto command) {
    add(name, about, [command, &state] { return command(std::move(state)); }).options =
        [options, &state](CLI::App& app) { options(app, state); };
  }

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
  std::vector<Command> commands_;
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
  // A file may have a section for any command.
  config_->before_sections = [this] {
    for (Command& command : commands_) command.make_options();
  };
  add("send", "send files and folders to a host that runs 'onehop recv'", add_send_options, send_,
      send_command);
  add("recv", "receive files that another host sends with 'onehop send'", add_recv_options, recv_,
      recv_command);
  add("code", "print a new code of full length, for both ends of a script", code_command);
  add("pair", "pair this device with another one that runs 'onehop pair', too", add_pair_options,
      pair_, pair_command);
  add("peers", "list, rename, forget the devices that are paired with this one", add_peers_options,
      peers_, peers_command);
  add("receipt", "check who signed a receipt", add_receipt_options, receipt_, receipt_command);
  add("doctor", "show what onehop can see and use on this machine", add_doctor_options, doctor_,
      doctor_command);
  add("watch", "show a transfer that runs on this machine: its buffers, rates and bottleneck",
      add_watch_options, watch_, watch_command);
  add("rings", "show how full the AF_XDP rings of any program on this machine are",
      add_rings_options, rings_, rings_command);
#if ONEHOP_HAS_P2P
  add("p2p", "form a Wi-Fi Direct group with another machine, and leave it", p2p::add_verbs, p2p_,
      [](p2p::P2pCommand&& p2p) { return static_cast<ExitCode>(p2p.run()); });
#endif
  // Listed alone: who names one first has become it.
  for (const Laboratory& each : laboratories) {
    const std::string name{each.name};
    add(name.c_str(), each.about, [this, name] {
      const Error error{ExitCode::usage, "start it", "other options come before its name",
                        "Write 'onehop " + name + "', and its options then"};
      return static_cast<ExitCode>(refuse(app_, error, {}));
    }).app->group("Laboratories");
  }
  // Last, for commands that are added later would inherit it.
  app_.footer("'onehop COMMAND --help' lists the options of a command.");
}

Program::Command& Program::add(const char* name, const char* about,
                               std::function<ExitCode()> command) {
  CLI::App* const app = app_.add_subcommand(name, about);
  app->preparse_callback(
      [this, at = commands_.size()](std::size_t) { commands_[at].make_options(); });
  return commands_.emplace_back(Command{app, nullptr, std::move(command)});
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
  for (const Command& command : commands_) {
    if (!command.app->parsed()) continue;
    if (command.app->get_name() == "send" || command.app->get_name() == "recv")
      if (const auto raised = raise_descriptor_limit(); raised.has_error())
        return refuse(app_, raised.error(), words);
    return static_cast<int>(command.run());
  }
  mark_missing();
  std::fputs(app_.help().c_str(), stderr);
  return static_cast<int>(ExitCode::usage);
}

}  // namespace

int run_program(int argc, char** argv) { return Program{}.run(argc, argv); }

}  // namespace onehop::tool
