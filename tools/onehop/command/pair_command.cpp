// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop pair: the two devices get to know each other, by words that are typed once.
//
//   does somebody pair on the link? ─ yes ─▶ ask for his words ─▶ Introduce, both ways
//                                   └ no ──▶ show words, and wait
#include <CLI/CLI.hpp>

#include <functional>

#include "control/session/code/code.hpp"
#include "control/transfer/settings.hpp"
#include "tools/onehop/command/commands.hpp"
#include "tools/onehop/confinement.hpp"
#include "tools/onehop/devices.hpp"
#include "tools/onehop/finding.hpp"
#include "tools/onehop/frontend.hpp"

namespace onehop::tool {

namespace {

/// Both sides keep the other device as the user that they are by now.
Result<void> prepare(const PairCommand& command, const std::optional<User>& user,
                     api::Transfer& transfer) {
  ONEHOP_TRYV(transfer::result_of(transfer.check()));
  ONEHOP_TRYV(transfer::result_of(transfer.open()));
  ONEHOP_TRYV(become(user));
  if (device_folder(user).empty())
    return Error{ExitCode::local_file_error, "keep paired devices", "this user has no home folder",
                 "Set ONEHOP_CONFIG_DIR to a folder of its own"};
  return transfer::result_of(transfer.set_devices(devices_of(user, command.output)));
}

Result<void> ask_for_code(const PairCommand& command, const std::optional<User>& user,
                          const api::SendOptions& options, Frontend& frontend,
                          api::Transfer& transfer) {
  ONEHOP_TRYV(prepare(command, user, transfer));
  ONEHOP_TRY(code, session::read_code({.file = command.output.code_file}));
  ONEHOP_TRYV(transfer::result_of(transfer.set_code(code.text())));
  return confine_transfer({.options = options.common,
                           .output = command.output,
                           .to = options.to,
                           .devices = device_folder(user),
                           .is_other_user = user.has_value()},
                          frontend.reporter());
}

Result<void> show_code(const PairCommand& command, const std::optional<User>& user,
                       const api::ReceiveOptions& options, Frontend& frontend,
                       api::Transfer& transfer) {
  ONEHOP_TRYV(prepare(command, user, transfer));
  if (has_code(command.output)) {
    ONEHOP_TRY(code,
               session::read_code({.file = command.output.code_file, .is_prompt_allowed = false}));
    ONEHOP_TRYV(transfer::result_of(transfer.set_code(code.text())));
  }
  RecvCommand answering;
  answering.transfer = options;
  answering.name = command.output.device_name;
  if (auto found = answering_of(answering)) {
    found->is_pairing = true;
    ONEHOP_TRY(hash, peer_hash_of(user));
    found->peer_hash = std::move(hash);
    frontend.let_find(std::move(found));
  }
  return confine_transfer({.options = options.common,
                           .output = command.output,
                           .listen = options.listen,
                           .devices = device_folder(user),
                           .is_other_user = user.has_value()},
                          frontend.reporter());
}

template <class Options>
ExitCode run(const Options& options, Frontend& frontend,
             const std::function<Result<void>(api::Transfer&)>& prepared) {
  api::Transfer transfer{options, frontend.handler()};
  if (const auto ready = prepared(transfer); ready.has_error()) return frontend.fail(ready.error());
  return frontend.run(transfer);
}

}  // namespace

void add_pair_options(CLI::App& command, PairCommand& pair) {
  command
      .add_option("NAME", pair.to,
                  "the other device: the name that it shows, or its address HOST[:PORT] (default: "
                  "the device that pairs on a link of this machine)")
      ->type_name("NAME");
  command
      .add_option("--listen", pair.listen,
                  "show a code, and wait for the other one here (default: all addresses, port "
                  "7411, where no other one is found)")
      ->type_name("ADDR[:PORT]");
  command.add_option("--iface", pair.interface, "look for it on this interface alone")
      ->type_name("IF");
  command
      .add_option("--name", pair.output.device_name,
                  "by which this device introduces itself (default: the host's)")
      ->check(CLI::Validator{[](std::string& name) {
                               return pair::is_peer_name(name)
                                          ? std::string{}
                                          : "it is no name of at most 63 bytes";
                             },
                             "NAME"});
  command
      .add_option("--code-file", pair.output.code_file,
                  "file that holds the code ('-' for standard input; else ONEHOP_CODE, else words "
                  "are shown, or asked for)")
      ->type_name("FILE");
  command
      .add_option("--user", pair.output.user,
                  "started as root: whose devices these are (default: who called sudo)")
      ->type_name("NAME");
  command.add_flag("--json", pair.output.is_json,
                   "events as JSON lines on standard output, text on standard error");
  command.footer(
      "Run it on both: the one that is started first shows three words, and the other\n"
      "one asks for them. Then 'onehop send PATH' needs no words between the two. See\n"
      "'onehop peers'.");
}

ExitCode pair_command(PairCommand command) {
  command.output.is_pairing = command.output.is_remembered = true;
  Frontend frontend{command.output, "pair"};
  const auto user = find_user(command.output.user, {});
  if (user.has_error()) return frontend.fail(user.error());
  std::string to = is_looked_for(command.to) ? "" : command.to;
  if (to.empty() && command.listen.empty()) {
    auto found = find_pairing(command, frontend.reporter());
    if (found.has_error()) return frontend.fail(found.error());
    to = std::move(found).value();
  }
  if (!to.empty()) {
    api::SendOptions options;
    options.common.interface = command.interface;
    options.to = to;
    options.is_pairing = true;
    return run(options, frontend, [&](api::Transfer& transfer) {
      return ask_for_code(command, user.value(), options, frontend, transfer);
    });
  }
  api::ReceiveOptions options;
  options.common.interface = command.interface;
  options.common.io = "udp";
  options.listen = command.listen;
  options.is_pairing = true;
  return run(options, frontend, [&](api::Transfer& transfer) {
    return show_code(command, user.value(), options, frontend, transfer);
  });
}

}  // namespace onehop::tool
