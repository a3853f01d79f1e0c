// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop recv: what the program adds to a receiving Transfer, and recv --clean.
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>

#include "control/session/code/code.hpp"
#include "control/transfer/port/ports.hpp"
#include "engine/base/display_name.hpp"
#include "engine/disk/clean.hpp"
#include "tools/onehop/command/commands.hpp"
#include "tools/onehop/confinement.hpp"
#include "tools/onehop/devices.hpp"
#include "tools/onehop/finding.hpp"
#include "tools/onehop/frontend.hpp"
#include "tools/onehop/preflight.hpp"
#include "tools/onehop/privilege.hpp"
#include "tools/onehop/text/quantity.hpp"
#include "tools/onehop/text/report.hpp"
#if ONEHOP_HAS_P2P
#include "tools/onehop/p2p/group_session.hpp"
#include "tools/onehop/p2p/p2p_text.hpp"
#endif

namespace onehop::tool {

namespace {

/// check_files sees now what would end each session: a folder, a trace or a receipt that cannot be
/// written.
Result<void> check_files(const api::ReceiveOptions& options) {
  if (options.stream_fd < 0) {
    ONEHOP_TRYV(check_folder(options.directory));
  }
  return check_output_files(options.common);
}

/// check_machine sees now what each sender would find out.
Result<void> check_machine(const api::ReceiveOptions& options) {
  ONEHOP_TRY(listen, transfer::parse_endpoint(options.listen));
  ONEHOP_TRYV(check_interface(options.common.interface));
  return options.common.io == "dpdk" ? success() : check_udp_port(listen);
}

Result<void> take_code(const RecvCommand& command, api::Transfer& transfer) {
  if (!has_code(command.output)) return success();
  if (command.transfer.is_service)
    return Error{ExitCode::usage, "serve paired devices",
                 "a code was given, and a service has none",
                 "Unset ONEHOP_CODE; onehop pair lets a device in"};
  ONEHOP_TRY(code,
             session::read_code({.file = command.output.code_file, .is_prompt_allowed = false}));
  return transfer::result_of(transfer.set_code(code.text()));
}

/// take_devices gives the folders of paired devices that have one of their own.
Result<std::vector<std::string>> take_devices(const RecvCommand& command,
                                              const std::optional<User>& user,
                                              const Reporter& reporter, api::Transfer& transfer) {
  std::vector<std::string> folders;
  const bool is_service = command.transfer.is_service;
  if (device_folder(user).empty() && !is_service) return folders;
  if (device_folder(user).empty())
    return Error{ExitCode::local_file_error, "serve paired devices", "this user has no home folder",
                 "Set ONEHOP_CONFIG_DIR to a folder of its own"};
  api::Devices devices = devices_of(user, command.output);
  devices.is_key_made = is_service;
  ONEHOP_TRYV(transfer::result_of(transfer.set_devices(devices)));
  ONEHOP_TRY(book, read_peers(user));
  for (const pair::Peer& peer : book.peers()) {
    if (peer.rule != pair::Rule::accept || peer.folder.empty()) continue;
    if (const auto checked = check_folder(peer.folder); checked.has_error()) {
      const Error error{ExitCode::local_file_error, "receive from " + peer.name,
                        checked.error().message(),
                        "onehop peers set NAME --dir FOLDER names another"};
      if (!is_service) return error;
      reporter.warn(error.message());  // the others are served
    }
    folders.push_back(peer.folder);
  }
  if (is_service && book.peers().empty())
    reporter.say("no device is paired yet: 'onehop pair' on both machines");
  return folders;
}

/// Sockets and rings are opened first, while the privileges are there. All else is its user's.
Result<void> open(const RecvCommand& command, const std::optional<User>& user, Frontend& frontend,
                  Service& service, api::Transfer& transfer) {
  const api::ReceiveOptions& options = command.transfer;
  ONEHOP_TRYV(transfer::result_of(transfer.check()));
  if (!user) {
    ONEHOP_TRYV(check_files(options));
  }
  ONEHOP_TRYV(check_machine(options));
  ONEHOP_TRYV(transfer::result_of(transfer.open()));
  ONEHOP_TRYV(become(user));
  if (user) {
    ONEHOP_TRYV(check_files(options));
  }
  ONEHOP_TRYV(take_code(command, transfer));
  ONEHOP_TRY(accepted, take_devices(command, user, frontend.reporter(), transfer));
  if (options.is_service) {
    ONEHOP_TRYV(service.start());
    frontend.serve(service);
  }
  frontend.let_watch();
  if (auto answering = answering_of(command)) {
    ONEHOP_TRY(hash, peer_hash_of(user));
    answering->peer_hash = std::move(hash);
    frontend.let_find(std::move(answering));
  }
  return confine_transfer({.options = options.common,
                           .output = command.output,
                           .destination = options.stream_fd < 0 ? options.directory : "",
                           .listen = options.listen,
                           .accepted = std::move(accepted),
                           .devices = device_folder(user),
                           .metrics_file = command.service.metrics_file,
                           .stream_fd = options.stream_fd,
                           .is_other_user = user.has_value()},
                          frontend.reporter());
}

/// The folder "-" is standard output, which takes one session.
Result<void> take_stream(RecvCommand& command) {
  if (command.transfer.directory != "-") return success();
  if (command.transfer.is_service)
    return Error{ExitCode::usage, "write to standard output", "a service takes several sessions",
                 "Name a folder with --dir", 0};
  if (command.output.is_json)
    return Error{ExitCode::usage, "write to standard output", "--json writes there as well",
                 "Leave it out, or name a folder with --dir (./- for one called -)", 0};
  command.transfer.stream_fd = STDOUT_FILENO;
  command.transfer.is_once = true;
  (void)::signal(SIGPIPE, SIG_IGN);  // a reader that is gone is an error with a text
  return success();
}

Result<void> clean_folder(const RecvCommand& command, const Reporter& reporter) {
  ONEHOP_TRYV(become_for_files(command.output.user, *command.clean));
  const std::string_view done = command.is_dry_run ? "would be removed" : "removed";
  std::uint64_t removed = 0, removed_bytes = 0, kept = 0, failed = 0;
  const auto report = [&](const disk::CleanItem& item) {
    const std::string name = display_name(item.path);
    if (item.outcome == disk::CleanItem::Outcome::removed) {
      ++removed;
      removed_bytes += item.bytes;
      return reporter.say(fmt::format("{}: {}  {}", done, name, format_bytes(item.bytes)));
    }
    ++kept;
    if (item.outcome == disk::CleanItem::Outcome::kept)
      return reporter.say(fmt::format("left: {}: {}", name, item.cause));
    ++failed;
    reporter.warn(fmt::format("remove '{}': {}", name, item.cause));
  };
  ONEHOP_TRYV(disk::clean({.folder = *command.clean, .is_dry_run = command.is_dry_run}, report));
  reporter.event("clean", {{"removed", removed},
                           {"bytes", removed_bytes},
                           {"kept", kept},
                           {"dry_run", command.is_dry_run}});
  reporter.say(fmt::format("{} thing{}, {} {}; {} left", removed, removed == 1 ? "" : "s",
                           format_bytes(removed_bytes), done, kept));
  if (failed == 0) return success();
  return Error{ExitCode::local_file_error, "clean '" + display_name(*command.clean) + "'",
               fmt::format("{} of what is left could not be removed or looked into", failed),
               "Run it as the user who may"};
}

/// `before_run`: called with the opened transfer; what it returns lives while that runs.
ExitCode receive_files(
    RecvCommand command, const std::optional<User>& user, Frontend& frontend,
    const std::function<Result<std::shared_ptr<void>>(api::Transfer&)>& before_run = {}) {
  Service service{command.service};
  if (command.transfer.is_service) {
    command.transfer.beat_seconds = service.beat_seconds();
    command.transfer.is_asking = Service::is_desktop_possible();
  }
  const auto rights = keep_rights(command.transfer.common);
  if (rights.has_error()) return frontend.fail(rights.error());
  api::Transfer transfer{command.transfer, frontend.handler()};
  if (auto opened = open(command, user, frontend, service, transfer); !opened.has_value())
    return frontend.fail(opened.error());
  std::shared_ptr<void> beside;
  if (before_run) {
    auto ready = before_run(transfer);
    if (ready.has_error()) return frontend.fail(ready.error());
    beside = std::move(ready).value();
  }
  return frontend.run(transfer);
}

#if ONEHOP_HAS_P2P
/// receive_over_group ends the group when it returns, and where it does not, too (GroupKeeper).
/// Nobody but members of the group can connect.
ExitCode receive_over_group(RecvCommand command, const std::optional<User>& user,
                            Frontend& frontend) {
  if (!user) {  // before the other machine is kept waiting for nothing
    if (auto checked = check_files(command.transfer); checked.has_error())
      return frontend.fail(checked.error());
  }
  const Reporter reporter{command.output, "recv"};
  auto group = p2p::GroupSession::form({.interface = command.transfer.common.interface}, reporter);
  if (group.has_error()) return frontend.fail(group.error());
  const p2p::Group& formed = group.value().group();
  frontend.show_network(
      {formed.ssid, formed.passphrase, p2p::wifi_text(formed.ssid, formed.passphrase)});
  command.transfer.common.interface = group.value().interface();
  // A port that takes one address takes the one that `send --p2p` goes to.
  const transfer::PortKind* const kind = transfer::port_kind(command.transfer.common.io);
  if (kind != nullptr && kind->is_bound) command.transfer.listen = group.value().own_address();
  command.transfer.is_once = true;
  const auto keep_open = [&](api::Transfer& transfer) -> Result<std::shared_ptr<void>> {
    ONEHOP_TRY(door, group.value().keep_open(reporter, [&transfer] { transfer.interrupt(); }));
    return std::shared_ptr<void>{std::move(door)};
  };
  return receive_files(command, user, frontend, keep_open);
}
#endif

}  // namespace

ExitCode recv_command(RecvCommand command) {
  if (command.clean) {
    const Reporter reporter{command.output, "recv"};
    const auto cleaned = clean_folder(command, reporter);
    if (cleaned.has_value()) return ExitCode::done;
    reporter.error(cleaned.error());
    return cleaned.error().code;
  }
  command.output.has_all_files = command.transfer.common.has_all_files;
  command.output.device_name = command.name;
  command.output.is_service = command.transfer.is_service;
  if (command.transfer.is_service) command.transfer.sessions_max = command.sessions;
  Frontend frontend{command.output, "recv"};
  if (auto taken = take_stream(command); taken.has_error()) return frontend.fail(taken.error());
  command.transfer.common.command_line = command_line();
  const auto user = find_user(command.output.user,
                              command.transfer.stream_fd < 0 ? command.transfer.directory : "");
  if (user.has_error()) return frontend.fail(user.error());
#if ONEHOP_HAS_P2P
  if (command.is_p2p) return receive_over_group(std::move(command), user.value(), frontend);
#endif
  return receive_files(command, user.value(), frontend);
}

}  // namespace onehop::tool
