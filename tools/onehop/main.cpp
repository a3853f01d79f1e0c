// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop: one binary, one file per command. This file reads the command line and nothing else.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/memory.hpp"
#include "engine/crypto/secret.hpp"

#if ONEHOP_HAS_LAB
#include "tools/lab/lab_command.hpp"
#endif
#include "tools/onehop/bench/bench_command.hpp"
#include "tools/onehop/commands.hpp"
#include "tools/onehop/help.hpp"
#include "tools/onehop/refusal.hpp"
#include "tools/onehop/report.hpp"
#include "tools/plot/figure.hpp"
#if ONEHOP_HAS_STRESS
#include "tools/stress/stress_command.hpp"
#endif

namespace onehop::tool {
namespace {

#if ONEHOP_HAS_STRESS
#if ONEHOP_HAS_LAB
constexpr stress::RealRunners real_runners{.lab = stress::run_lab_rings, .interface = stress::run_interface_rings};
#else
constexpr stress::RealRunners real_runners;
#endif
#endif

/// ConfigFile: what --config names. A JSON object is kept for the law, all else is the parser's TOML.
class ConfigFile : public CLI::ConfigTOML {
 public:
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    while (std::isspace(input.peek()) != 0) input.get();
    if (input.peek() != '{') return CLI::ConfigTOML::from_config(input);
    law_text_.assign(std::istreambuf_iterator<char>{input}, {});
    return {};
  }
  [[nodiscard]] const std::string& law_text() const { return law_text_; }

 private:
  mutable std::string law_text_;  // the base class has from_config() const
};

std::optional<Error> take_law_params(const ConfigFile& config, const CLI::App& app,
                                     std::initializer_list<CommonOptions*> commands) {
  if (config.law_text().empty()) return std::nullopt;
  law::LawParams params;
  const auto law = law::read_params(config.law_text(), app.get_config_ptr()->as<std::string>(), params);
  if (!law.has_value()) return law.error();
  for (CommonOptions* options : commands) {
    options->law_params = params;
    options->law_params_of = law.value();
  }
  return std::nullopt;
}

constexpr const char* config_footer = "\n'--config FILE' reads options from a file: see 'onehop --help'.";

CLI::App* add_send_command(CLI::App& app, SendOptions& send) {
  CLI::App* command = app.add_subcommand("send", "send files to a host that runs 'onehop recv'");
  command->add_option("PATH", send.paths, "regular files")->required();
  command->add_option("--to", send.to, "the receiver")->type_name("HOST[:PORT]")->required();
  command->add_option("--wait", send.wait_seconds, "seconds to wait for a receiver that is not there yet, or busy")->check(CLI::Range(0.0, 3600.0))->capture_default_str();
  add_common_options(*command, send.common);
  command->add_option("--link-model", send.common.link_model,
                      "a model of the link publishes its facts to this Unix socket, in place of the interface's own")->type_name("FILE")->group("Link");
  command->add_flag("--fragment", send.has_fragments,
                    "an experiment: datagrams of 64 KB in IP fragments (--io udp), until the path loses 0.1 % of its frames")->group("Link");
  command->add_flag("--mac-noack", send.has_mac_noack,
                    "with --repair lazy on Wi-Fi: no receiver's MAC acknowledges our data frames, which get a TID of their own (needs sudo)")->group("Link");
  command->footer(std::string{"Example: onehop send video.mkv notes.txt --to 192.168.49.1"} + config_footer);
  command->fallthrough();  // so that --config may stand behind the command as well
  return command;
}

CLI::App* add_recv_command(CLI::App& app, RecvOptions& recv) {
  CLI::App* command = app.add_subcommand("recv", "receive files that another host sends with 'onehop send'");
  command->add_option("--dir", recv.directory, "destination folder")->type_name("FOLDER")->capture_default_str();
  command->add_option("--listen", recv.listen, "where to listen (default: all addresses, port 7411)")->type_name("ADDR[:PORT]");
  command->add_flag("--once", recv.is_once, "end after the first accepted session, with its exit code");
  command->add_option("--on-exist", recv.on_exist, "what to do about a name that exists")
      ->check(CLI::IsMember({"ask", "resume", "skip", "rename", "overwrite"}))->capture_default_str();
  command->add_flag("--allow-hidden", recv.is_hidden_allowed, "also take names that begin with a dot, and names in folders");
  add_common_options(*command, recv.common);
  for (const char* name : {"--law", "--target", "--bounds", "--qcut", "--digest", "--key-interval"}) {
    CLI::Option* option = command->get_option(name);
    option->description(option->get_description() + "; the sender's counts");
  }
  command->footer(std::string{"Example: onehop recv --dir Downloads"} + config_footer);
  command->fallthrough();
  return command;
}

CLI::App* add_doctor_command(CLI::App& app, DoctorOptions& doctor) {
  CLI::App* command = app.add_subcommand("doctor", "show what onehop can see and use on this machine");
  command->add_option("--iface", doctor.interface, "network interface to look at (default: all that are up)")->type_name("IF");
  command->add_flag("--no-probe{false}", doctor.is_probing, "do not try AF_XDP: it takes the link of some drivers down for a second");
  command->add_flag("--json", doctor.is_json, "one JSON line per interface on standard output");
  return command;
}

/// refuse tells it as the command itself would: where the parser gave up before --json, the words still have it.
int refuse(const CLI::App& app, const Error& error, std::span<char* const> words) {
  const std::string command = words_of(app);
  if (command == "onehop send" || command == "onehop recv") {
    CommonOptions options;
    const std::vector<std::string_view> texts{words.begin(), words.end()};
    const auto options_end = std::ranges::find(texts, "--");  // what follows are names of files
    options.is_json = std::find(texts.begin(), options_end, "--json") != options_end;
    Reporter{options, command.substr(sizeof "onehop")}.error(error);
  } else {
    std::fprintf(stderr, "%s: %s\n", command.c_str(), error.message().c_str());
  }
  return static_cast<int>(error.code);
}

CLI::App* add_watch_command(CLI::App& app, WatchOptions& watch) {
  CLI::App* command = app.add_subcommand("watch", "show a transfer that runs on this machine: its buffers, rates and bottleneck");
  command->add_option("PID", watch.pid, "process of the send or recv (default: the one that runs)")->check(CLI::Range(1, 4'194'304));
  command->add_option("--interval", watch.interval_seconds, "seconds between two pictures (default: 0.2 on a terminal, else 1)")
      ->check(CLI::Range(0.1, 3600.0));
  command->add_flag("--once", watch.is_once, "show the present state once, of each transfer, and end");
  command->add_flag("--json", watch.is_json, "one JSON line per interval on standard output");
  return command;
}

CLI::App* add_plot_command(CLI::App& app, PlotOptions& plot) {
  CLI::App* command = app.add_subcommand("plot", "make a report of traces: one HTML file, and by gnuplot SVG and PNG");
  command->add_option("TRACE", plot.traces, "files that --trace wrote, on one time axis")->required();
  command->add_option("--label", plot.labels, "what a trace is called in the report; once per trace (default: its file's name)")
      ->type_name("NAME")->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--capacity", plot.capacities, "what the link can carry, drawn beside the rates: 600Mbit, or a file of 'lab run --rate-log'; once, or per trace")
      ->type_name("RATE|FILE")->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--only", plot.only, "draw these alone, with commas between")
      ->delimiter(',')->check(CLI::IsMember(std::vector<std::string>(plot::plate_names.begin(), plot::plate_names.end())));
  command->add_option("--title", plot.title, "the report's title")->type_name("TITLE");
  command->add_option("--out", plot.out, "FILE.html, or a folder (default: this one); the pictures stand beside it")->type_name("FILE");
  command->add_option("--on-exist", plot.on_exist, "what to do about outputs that exist")
      ->check(CLI::IsMember({"ask", "rename", "overwrite"}))->capture_default_str();
  return command;
}

int run_program(int argc, char** argv) {
  remember_command_line(argc, argv);
  const std::span<char* const> words{argv, static_cast<std::size_t>(argc)};
  CLI::App app{"onehop moves files between two machines that are one hop apart, at the line rate of that hop.", "onehop"};
  app.formatter(std::make_shared<Help>());
  app.set_help_flag("-h,--help", "print this help and exit");
  app.require_subcommand(0, 1);
  const auto config = std::make_shared<ConfigFile>();
  app.config_formatter(config);
  app.set_config("--config", "", "read options (TOML, a section per command) or law parameters (JSON) from this file")->type_name("FILE");
  app.allow_config_extras(CLI::config_extras_mode::error);
  bool is_version = false, is_verbose = false;
  app.add_flag("--version", is_version, "print the version (with -v: what this build can do)");
  app.add_flag("-v,--verbose", is_verbose, "with --version: features, and why one is off");

  SendOptions send;
  CLI::App* send_app = add_send_command(app, send);

  RecvOptions recv;
  CLI::App* recv_app = add_recv_command(app, recv);

  DoctorOptions doctor;
  CLI::App* doctor_app = add_doctor_command(app, doctor);

  WatchOptions watch;
  CLI::App* watch_app = add_watch_command(app, watch);
  bench::BenchOptions bench;
  bench::add_bench_command(app, bench);

  PlotOptions plot;
  CLI::App* plot_app = add_plot_command(app, plot);

#if ONEHOP_HAS_LAB
  lab::LabCommand lab_command;
  lab::add_lab_command(app, lab_command);
#endif
#if ONEHOP_HAS_STRESS
  stress::StressCommand stress_command;
  stress::add_stress_command(app, stress_command, real_runners);
#endif

  app.footer("'onehop COMMAND --help' lists the options of a command.");  // now: commands that are added later would inherit it

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    return app.exit(asked_for_help);
  } catch (const CLI::ParseError& error) {
    return refuse(app, refusal_of(app, error), words);
  }
  if (const auto error = take_law_params(*config, app, {&send.common, &recv.common})) return refuse(app, *error, words);
  if (is_version) return static_cast<int>(version_command(is_verbose));
  if (!crypto::forbid_core_dumps()) {
    std::fputs("onehop: keep keys out of core dumps: the kernel refuses prctl(PR_SET_DUMPABLE) or setrlimit(RLIMIT_CORE). Look at the sandbox it runs in\n", stderr);
    return static_cast<int>(ExitCode::internal_error);
  }
  if (send_app->parsed()) return static_cast<int>(send_command(std::move(send)));
  if (recv_app->parsed()) return static_cast<int>(recv_command(recv));
  if (doctor_app->parsed()) return static_cast<int>(doctor_command(doctor));
  if (watch_app->parsed()) return static_cast<int>(watch_command(watch));
  if (bench.is_parsed) return static_cast<int>(bench::bench_command(bench));
  if (plot_app->parsed()) return static_cast<int>(plot_command(plot));
#if ONEHOP_HAS_LAB
  if (lab_command.is_parsed()) return lab_command.run();
#endif
#if ONEHOP_HAS_STRESS
  if (stress_command.is_parsed()) return stress_command.run();
#endif
  std::fputs(app.help().c_str(), stderr);
  return static_cast<int>(ExitCode::usage);
}

}  // namespace
}  // namespace onehop::tool

int main(int argc, char** argv) {
  try {
    return onehop::tool::run_program(argc, argv);
  } catch (const std::bad_alloc& refused) {
    const onehop::Error error = onehop::memory_error("run", refused);
    std::fprintf(stderr, "onehop: %s\n", error.message().c_str());
    return static_cast<int>(error.code);
  }
}
