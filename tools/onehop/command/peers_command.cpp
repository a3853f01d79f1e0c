// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop peers: the devices that are paired with this one.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tools/onehop/command/commands.hpp"
#include "tools/onehop/devices.hpp"
#include "tools/onehop/text/quantity.hpp"
#include "tools/onehop/text/report.hpp"
#include "tools/onehop/text/terminal.hpp"

namespace onehop::tool {

namespace {

void list(const pair::PeerBook& book, const std::string& folder, bool is_json) {
  OutputOptions output;
  output.is_json = is_json;
  const Reporter reporter{output, "peers"};
  for (const pair::Peer& peer : book.peers()) {
    const std::string rule{pair::rule_words[static_cast<std::size_t>(peer.rule)]};
    reporter.event("device",
                   {{"device", peer.name},
                    {"fingerprint", pair::fingerprint(peer.key)},
                    {"rule", rule},
                    {"folder", peer.folder.empty() ? Json{} : Json(peer.folder)},
                    {"quota_bytes", peer.quota_bytes == 0 ? Json{} : Json(peer.quota_bytes)},
                    {"paired", peer.paired}});
    if (!is_json)
      fmt::print("{}  key {}  paired {}  {}{}{}\n", peer.name, pair::fingerprint(peer.key),
                 peer.paired, rule, peer.folder.empty() ? "" : " into " + peer.folder,
                 peer.quota_bytes == 0 ? "" : ", at most " + format_bytes(peer.quota_bytes));
  }
  if (book.peers().empty() && !is_json)
    fmt::print("No device is paired: run 'onehop pair' on both. They will be kept in {}\n", folder);
}

Result<void> change(pair::PeerBook& book, const PeersCommand& command) {
  const pair::Peer* const known = book.find(command.name);
  if (known == nullptr)
    return Error{ExitCode::usage, "find the device " + command.name, "none is called so",
                 "onehop peers lists them"};
  if (command.verb == PeersCommand::Verb::forget) {
    ONEHOP_TRYV(book.forget(command.name));
    fmt::print("forgotten: {}. A session of it that runs goes on\n", command.name);
    return success();
  }
  pair::Peer changed = *known;
  if (!command.new_name.empty()) changed.name = command.new_name;
  if (command.rule)
    changed.rule = static_cast<pair::Rule>(std::ranges::find(pair::rule_words, *command.rule) -
                                           pair::rule_words.begin());
  changed.quota_bytes = command.quota_bytes.value_or(changed.quota_bytes);
  if (command.folder)
    changed.folder = *command.folder == "none"
                         ? ""
                         : std::filesystem::absolute(*command.folder).lexically_normal().string();
  if (std::ranges::any_of(changed.folder, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return Error{ExitCode::usage, "receive into that folder", "its name has control characters",
                 "Choose another one"};
  // Where it only was named before and has gone, the device can still be refused.
  if (command.folder && !changed.folder.empty() &&
      ::access(changed.folder.c_str(), W_OK | X_OK) != 0)
    return errno_error(ExitCode::local_file_error, "receive into " + changed.folder,
                       "Make the folder first");
  return book.change(command.name, changed);
}

Result<void> run(const PeersCommand& command) {
  // As 'pair', 'send' and 'recv' do: those of whoever called sudo.
  ONEHOP_TRY(user, find_user({}, {}));
  ONEHOP_TRYV(become(user));
  const std::string folder = device_folder(user);
  if (folder.empty())
    return Error{ExitCode::local_file_error, "read paired devices", "this user has no home folder",
                 "Set ONEHOP_CONFIG_DIR to a folder of its own"};
  ONEHOP_TRY(book, read_peers(user));
  if (command.verb != PeersCommand::Verb::list) return change(book, command);
  list(book, folder, command.is_json);
  return success();
}

}  // namespace

void add_peers_options(CLI::App& command, PeersCommand& peers) {
  using Verb = PeersCommand::Verb;
  command.require_subcommand(0, 1);
  command.add_flag("--json", peers.is_json, "one JSON line per device");
  const auto add = [&](const char* name, const char* about, Verb verb) {
    CLI::App* one = command.add_subcommand(name, about);
    one->add_option("NAME", peers.name, "the device, as 'onehop peers' lists it")
        ->type_name("")
        ->required();
    one->callback([&peers, verb] { peers.verb = verb; });
    return one;
  };
  const CLI::Validator is_name{[](std::string& name) {
                                 return pair::is_peer_name(name) &&
                                                name.find_first_of(":@") == std::string::npos
                                            ? std::string{}
                                            : "a name has at most 63 bytes, and neither : nor @";
                               },
                               ""};
  add("rename", "call a device otherwise", Verb::rename)
      ->add_option("NEW", peers.new_name, "its new name")
      ->type_name("")
      ->check(is_name)
      ->required();
  add("forget", "no longer know a device", Verb::forget);
  CLI::App* set = add("set", "what 'recv' does about what a device offers", Verb::set);
  set->add_option("--rule", peers.rule, "ask a person (default), accept, or refuse")
      ->check(CLI::IsMember({"ask", "accept", "refuse"}));
  set->add_option("--dir", peers.folder,
                  "with accept: the folder for its files; none: the one of recv --dir")
      ->type_name("FOLDER");
  set->add_option("--quota", peers.quota_bytes,
                  "what 'recv --service' lets its folder hold (20GB); 0: as --quota there says")
      ->transform(CLI::AsSizeValue(true))
      ->type_name("SIZE");
  command.footer("Example: onehop peers set laptop --rule accept --dir ~/Incoming");
}

ExitCode peers_command(const PeersCommand& command) {
  const auto done = run(command);
  if (done.has_value()) return ExitCode::done;
  tell(fitted("onehop peers: " + done.error().message() + "\n"));
  return done.error().code;
}

}  // namespace onehop::tool
