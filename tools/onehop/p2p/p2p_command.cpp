// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/p2p/p2p_command.hpp"

#include <CLI/CLI.hpp>

#include <map>

#include "tools/onehop/p2p/p2p_verbs.hpp"
#include "tools/onehop/text/report.hpp"

namespace onehop::p2p {

namespace {

constexpr double find_seconds = 15, form_seconds = 120;

CLI::App* add_verb(CLI::App& p2p, const char* name, const char* about, P2pOptions& options) {
  CLI::App* verb = p2p.add_subcommand(name, about);
  verb->add_option("--iface", options.interface,
                   "the radio's interface (default: the first of wpa_supplicant's)")
      ->type_name("IF");
  verb->add_flag("--json", options.output.is_json,
                 "events as JSON lines on standard output, text on standard error");
  return verb;
}

void add_seconds(CLI::App& verb, P2pOptions& options, const char* about, double usual) {
  // The verbs share one variable: each sets its own default where the option is not given.
  verb.add_option("--seconds", options.seconds, about)
      ->check(CLI::Range(1.0, 3600.0))
      ->default_str(std::to_string(static_cast<int>(usual)));
}

/// A PIN is no word of a command: every user of the machine can read those.
CLI::Option* add_pin(CLI::App& verb, P2pOptions& options, const char* about) {
  CLI::Option* pin = verb.add_flag("--pin", options.is_pin_entered, about)->disable_flag_override();
  verb.add_option("--pin-file", options.pin_file,
                  "file that holds the PIN ('-' for standard input; else ONEHOP_PIN, else a "
                  "prompt)")
      ->type_name("FILE")
      ->needs(pin);
  return pin;
}

void add_pairing(CLI::App& verb, P2pOptions& options) {
  CLI::Option* pin = add_pin(verb, options,
                             "pair by the PIN that the other side shows, which is asked for "
                             "(default: by push button, which admits any device that asks)");
  verb.add_flag("--show-pin", options.is_pin_shown, "pair by a PIN that is shown here")
      ->excludes(pin);
}

void add_channel(CLI::App& verb, P2pOptions& options) {
  verb.add_option("--freq", options.frequency,
                  "channel in MHz, or 2 or 5 for a band, where this side owns the group (default: "
                  "5 GHz where it may be)")
      ->check(CLI::Range(1, 7200))
      ->type_name("MHZ");
  verb.add_flag("--persistent", options.is_persistent,
                "keep the group's name and key in wpa_supplicant, to be started again");
}

void add_negotiation(CLI::App& verb, P2pOptions& options) {
  add_pairing(verb, options);
  add_channel(verb, options);
  verb.add_option("--intent", options.owner_intent,
                  "who would rather own the group, 0 to 15 (default: accept 15, connect 0)")
      ->check(CLI::Range(0, 15))
      ->type_name("N");
  add_seconds(verb, options, "seconds until it gives up", form_seconds);
}

}  // namespace

void add_verbs(CLI::App& p2p, P2pCommand& command) {
  P2pOptions& options = command.options_;
  command.p2p_ = &p2p;
  p2p.require_subcommand(1);
  add_verb(p2p, "status", "show the radio, the groups that it is in, and their addresses", options);
  CLI::App* find = add_verb(p2p, "find", "list the devices in reach, as they are found", options);
  add_seconds(*find, options, "seconds to search", find_seconds);
  CLI::App* connect = add_verb(p2p, "connect", "form a group with a peer that accepts", options);
  connect->add_option("PEER", options.peer,
                      "its name or address (default: the only one that there is)");
  add_negotiation(*connect, options);
  CLI::App* accept = add_verb(p2p, "accept", "wait for a peer that connects, and accept", options);
  accept->add_option("PEER", options.peer, "its name or address (default: the first that asks)");
  add_negotiation(*accept, options);
  CLI::App* host = add_verb(
      p2p, "host", "start a group that others join, also those without Wi-Fi Direct", options);
  add_channel(*host, options);
  host->add_flag("--button", options.is_button,
                 "let in who asks by push button within the next two minutes");
  add_pin(*host, options, "let in who has the PIN that is asked for, of 8 digits");
  CLI::App* join = add_verb(p2p, "join", "join a group that another machine hosts", options);
  join->add_option("PEER", options.peer,
                   "name or address of its owner (default: the only one that there is)");
  add_pairing(*join, options);
  CLI::Option* ssid =
      join->add_option("--ssid", options.ssid,
                       "join as an ordinary WPA2 station the network of this name, which 'onehop "
                       "p2p host' shows; needs no Wi-Fi Direct here")
          ->type_name("SSID");
  for (const char* name : {"PEER", "--pin", "--show-pin"}) ssid->excludes(name);
  join->add_option("--passphrase-file", options.passphrase_file,
                   "file that holds its passphrase ('-' for standard input; else "
                   "ONEHOP_PASSPHRASE, else a prompt)")
      ->type_name("FILE")
      ->needs(ssid);
  add_seconds(*join, options, "seconds until it gives up", form_seconds);
  add_verb(p2p, "leave", "end the groups that this machine is in", options);
  p2p.footer(
      "A group stays until 'onehop p2p leave'.\n"
      "'onehop send --p2p' and 'onehop recv --p2p' do it all.");
}

int P2pCommand::run() {
  using Verb = Result<void> (*)(const P2pOptions&, const tool::Reporter&);
  static const std::map<std::string, Verb> verbs{{"status", show_status},   {"find", find_peers},
                                                 {"connect", connect_peer}, {"accept", accept_peer},
                                                 {"host", host_group},      {"join", join_group},
                                                 {"leave", leave_groups}};
  const std::string name = p2p_->get_subcommands().front()->get_name();
  if (options_.seconds == 0) options_.seconds = name == "find" ? find_seconds : form_seconds;
  const tool::Reporter reporter{options_.output, "p2p " + name};
  const auto done = verbs.at(name)(options_, reporter);
  if (done.has_value()) return 0;
  reporter.error(done.error());
  return static_cast<int>(done.error().code);
}

}  // namespace onehop::p2p
