// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/labs/lab/lab_command.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <optional>

#include "tools/labs/lab/lab.hpp"
#include "tools/onehop/laboratories.hpp"
#include "tools/onehop/text/quantity.hpp"

namespace onehop::lab {

namespace {

int refuse(const Error& error) {
  std::fprintf(stderr, "onehop lab: %s\n", error.message().c_str());
  return static_cast<int>(error.code);
}

Host host_of(const std::string& name) {
  if (name == "host") return Host::caller;
  return name == "a" ? Host::a : name == "b" ? Host::b : Host::m;
}

std::string congestion_control() {
  std::string name = "unknown";
  std::ifstream{"/proc/sys/net/ipv4/tcp_congestion_control"} >> name;
  return name;
}

std::string describe(const Profile& profile) {
  if (profile.wifi) {
    const air::ChannelOptions& channel = profile.wifi->channel;
    return fmt::format("Wi-Fi 11{} {} MHz, PHY {}, {:g} % MPDU loss",
                       channel.mode.standard == air::Standard::ac ? "ac" : "ax",
                       channel.mode.width_mhz, tool::format_rate(air::phy_rate(channel.mode)),
                       channel.loss_ppm / 1e4);
  }
  const char* const shaper = shaper_of(profile) == Shaper::htb ? "HTB" : "TBF";
  std::string text =
      !profile.rate ? "not shaped"
      : profile.trace.empty()
          ? fmt::format("{}, queue {}, {}", tool::format_rate(*profile.rate),
                        tool::format_bytes(static_cast<std::uint64_t>(profile.queue.count)), shaper)
          : fmt::format("rate trace of {} points, queue {}, {}", profile.trace.size(),
                        tool::format_bytes(static_cast<std::uint64_t>(profile.queue.count)),
                        shaper);
  if (profile.loss_ppm > 0) text += fmt::format(", {:g} % loss", profile.loss_ppm / 1e4);
  if (profile.disk) text += ", slow disk";
  return text;
}

void say_up(const std::string& name, const Profile& profile) {
  std::fprintf(stderr,
               "onehop lab: %s is up: %s (%s)\n"
               "  a: %s and %s on %s, shaper on %s\n  b: %s and %s on %s\n"
               "  tcp_congestion_control of this kernel: %s\n"
               "  onehop lab exec a -- COMMAND      onehop lab down\n",
               name.c_str(), profile.name.c_str(), describe(profile).c_str(), address_a4,
               address_a6, interface_a, lower_a, address_b4, address_b6, interface_b,
               congestion_control().c_str());
}

}  // namespace

CLI::App* add_lab_command(CLI::App& app, LabCommand& command) {
  CLI::App& lab = *app.add_subcommand("lab", tool::find_laboratory("lab")->about);
  lab.require_subcommand(1);
  command.up_ = lab.add_subcommand("up", "build a lab that stays until 'lab down'");
  command.down_ = lab.add_subcommand("down", "remove the lab, also one that a crash has left");
  command.exec_ = lab.add_subcommand("exec", "run a command on a host of a lab that is up");
  command.run_ = lab.add_subcommand(
      "run", "build a lab, run a command in it, remove it; exits as the command did");
  for (CLI::App* const verb : {command.up_, command.down_, command.exec_, command.run_})
    verb->add_option("--name", command.name_, "name of the lab, for more than one at a time")
        ->type_name("NAME")
        ->capture_default_str();
  for (CLI::App* const verb : {command.up_, command.run_})
    verb->add_option("--profile", command.profile_, "NAME of configs/lab/NAME.toml, or a file")
        ->type_name("NAME|FILE")
        ->capture_default_str();
  command.exec_->add_option("HOST", command.host_, "a (sender), b (receiver) or m (between them)")
      ->required()
      ->check(CLI::IsMember({"a", "b", "m"}));
  command.run_
      ->add_option("--on", command.host_,
                   "where the command runs; host: in the namespace of the caller")
      ->check(CLI::IsMember({"a", "b", "m", "host"}))
      ->capture_default_str();
  command.run_
      ->add_option("--rate-log", command.rate_log_,
                   "write when the link had which rate to this file, for onehop plot --capacity")
      ->type_name("FILE");
  for (CLI::App* const verb : {command.exec_, command.run_})
    verb->add_option("COMMAND", command.words_, "after --: the command and its arguments")
        ->required();
  return &lab;
}

int LabCommand::run_logged(Lab& lab, const Profile& profile, Host host) const {
  std::optional<RateLog> log;
  if (!rate_log_.empty()) {
    Result<RateLog> created = RateLog::create(rate_log_, profile);
    if (created.has_error()) return refuse(created.error());
    log = std::move(created).value();
  }
  const Result<int> code = lab.run(profile, host, words_, log ? &*log : nullptr);
  const Result<void> logged = log ? log->close() : success();
  if (code.has_error()) return refuse(code.error());
  if (logged.has_error()) return refuse(logged.error());
  return code.value();
}

int LabCommand::run() {
  Result<Lab> opened = Lab::open(name_);
  if (opened.has_error()) return refuse(opened.error());
  Lab& lab = opened.value();
  const Host host = host_of(host_);
  if (down_->parsed()) {
    const Result<void> done = lab.down();
    return done.has_error() ? refuse(done.error()) : 0;
  }
  if (exec_->parsed()) return refuse(lab.exec(host, words_));
  const Result<Profile> profile = load_profile(profile_);
  if (profile.has_error()) return refuse(profile.error());
  if (run_->parsed()) {
    return run_logged(lab, profile.value(), host);
  }
  const Result<void> done = lab.up(profile.value());
  if (done.has_error()) return refuse(done.error());
  say_up(name_, profile.value());
  return 0;
}

}  // namespace onehop::lab
