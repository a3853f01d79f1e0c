// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop send: what the program adds to a sending Transfer.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "control/session/code/code.hpp"
#include "engine/list/scan_arguments.hpp"
#include "tools/onehop/command/commands.hpp"
#include "tools/onehop/confinement.hpp"
#include "tools/onehop/devices.hpp"
#include "tools/onehop/finding.hpp"
#include "tools/onehop/frontend.hpp"
#include "tools/onehop/preflight.hpp"
#include "tools/onehop/privilege.hpp"
#include "tools/onehop/text/tree_text.hpp"
#if ONEHOP_HAS_P2P
#include "tools/onehop/p2p/group_session.hpp"
#endif
#include "control/transfer/settings.hpp"

namespace onehop::tool {

namespace {

/// check_files sees now what would end the transfer later: a file that cannot be sent, a trace or
/// receipt that cannot be written.
Result<void> check_files(const api::SendOptions& options) {
  // Folders are looked through once, when the transfer begins.
  ONEHOP_TRYV(list::check_arguments(options.paths));
  return check_output_files(options.common);
}

/// check_early comes before the other machine is looked for, or kept waiting, for nothing.
Result<void> check_early(api::SendOptions options, const std::optional<User>& user) {
  options.to = "::1";  // as if it were found
  const api::Transfer transfer{options, [](const api::Event&) {}};
  ONEHOP_TRYV(transfer::result_of(transfer.check()));
  return user ? success() : check_files(options);
}

/// Sockets and rings are opened first, while the privileges are there; then files are looked at by
/// their user, before anybody is asked for a code.
Result<void> open(const SendCommand& command, const std::optional<User>& user, Frontend& frontend,
                  api::Transfer& transfer) {
  const api::SendOptions& options = command.transfer;
  ONEHOP_TRYV(transfer::result_of(transfer.check()));
  if (!user) {
    ONEHOP_TRYV(check_files(options));
  }
  ONEHOP_TRYV(transfer::result_of(transfer.open()));
  ONEHOP_TRYV(become(user));
  if (user) {
    ONEHOP_TRYV(check_files(options));
  }
  if (!command.device.empty() || command.output.is_remembered) {
    ONEHOP_TRYV(transfer::result_of(
        transfer.set_devices(devices_of(user, command.output, command.device))));
  }
  if (command.device.empty()) {
    ONEHOP_TRY(code, session::read_code({.file = command.output.code_file,
                                         .is_hidden = command.output.is_code_hidden}));
    ONEHOP_TRYV(transfer::result_of(transfer.set_code(code.text())));
  }
  frontend.let_watch();
  return confine_transfer({.options = options.common,
                           .output = command.output,
                           .sources = options.paths,
                           .to = options.to,
                           .state_file = options.rate_memory_file,
                           .devices = command.output.is_remembered ? device_folder(user) : "",
                           .stream_fd = options.stream_fd,
                           .is_other_user = user.has_value()},
                          frontend.reporter());
}

/// The path "-" is standard input.
Result<void> take_stream(SendCommand& command) {
  api::SendOptions& transfer = command.transfer;
  const bool is_stream = std::ranges::find(transfer.paths, "-") != transfer.paths.end();
  const bool has_name = !transfer.stream_name.empty();
  if (!is_stream && !has_name) return success();
  const auto refuse = [](std::string_view cause) {
    return Error{ExitCode::usage, "send standard input", std::string{cause},
                 "Write onehop send - --name NAME, and ./- for a file called -", 0};
  };
  if (!is_stream) return refuse("--name is for it, and - is not among the paths");
  if (!has_name) return refuse("it has no name");
  if (transfer.paths.size() > 1) return refuse("there are paths beside it");
  if (command.is_dry_run) return refuse("--dry-run cannot know what comes");
  if (::fcntl(STDIN_FILENO, F_GETFD) < 0) return refuse("it is closed");
  transfer.paths.clear();
  transfer.stream_fd = STDIN_FILENO;
  return success();
}

Result<void> dry_run_as_user(const SendCommand& command) {
  ONEHOP_TRYV(become_for_files(command.output.user, {}));
  ONEHOP_TRYV(transfer::check_word("--symlinks", command.transfer.symlinks));
  return dry_run(command.transfer);
}

ExitCode transfer_files(const SendCommand& command, const std::optional<User>& user,
                        Frontend& frontend) {
  const auto rights = keep_rights(command.transfer.common);
  if (rights.has_error()) return frontend.fail(rights.error());
  api::Transfer transfer{command.transfer, frontend.handler()};
  if (auto opened = open(command, user, frontend, transfer); !opened.has_value())
    return frontend.fail(opened.error());
  return frontend.run(transfer);
}

#if ONEHOP_HAS_P2P
/// The receiver asks for its own address first, and a first packet over a new link may be lost.
constexpr double p2p_wait_seconds = 30;

/// send_over_group leaves the group when it returns, and where it does not, too (GroupKeeper).
ExitCode send_over_group(SendCommand command, const std::optional<User>& user, Frontend& frontend) {
  const Reporter reporter{command.output, "send"};
  const auto group = p2p::GroupSession::form({.is_sending = true,
                                              .interface = command.transfer.common.interface,
                                              .peer = command.p2p.peer},
                                             reporter);
  if (group.has_error()) return frontend.fail(group.error());
  command.transfer.common.interface = group.value().interface();
  command.transfer.to = group.value().peer_address();
  command.transfer.wait_seconds = std::max(command.transfer.wait_seconds, p2p_wait_seconds);
  return transfer_files(command, user, frontend);
}
#endif

Result<std::vector<std::string>> read_excludes_of_caller(const SendCommand& command) {
  const auto rights = CallerRights::take();
  if (rights.has_error()) return rights.error();
  return read_excludes(command.excludes);
}

}  // namespace

ExitCode send_command(SendCommand command) {
  command.transfer.common.command_line = command_line();
  command.output.has_all_files = command.transfer.common.has_all_files;
  Frontend frontend{command.output, "send"};
  const auto user = find_user(command.output.user, {});
  if (user.has_error()) return frontend.fail(user.error());
  command.transfer.rate_memory_file = rate_memory_file(user.value());
  if (auto excludes = read_excludes_of_caller(command); excludes.has_value())
    command.transfer.excludes = std::move(excludes).value();
  else
    return frontend.fail(excludes.error());
  if (auto taken = take_stream(command); taken.has_error()) return frontend.fail(taken.error());
  if (command.is_dry_run) {
    const auto listed = dry_run_as_user(command);
    return listed.has_value() ? ExitCode::done : frontend.fail(listed.error());
  }
  if (const Addressee to = addressee_of(command.transfer.to); !to.device.empty()) {
    if (has_code(command.output))
      return frontend.fail({ExitCode::usage, "send to " + to.device,
                            "a code was given, and a paired device has none",
                            "Leave out --code-file and ONEHOP_CODE, or name an address alone"});
    command.device = to.device;
    command.transfer.to = to.host;
  }
  if (is_looked_for(command.transfer.to)) {
    const auto checked = check_early(command.transfer, user.value());
    if (checked.has_error()) return frontend.fail(checked.error());
  }
#if ONEHOP_HAS_P2P
  if (command.p2p.is_wanted) return send_over_group(std::move(command), user.value(), frontend);
#endif
  if (auto found = find_receiver(command, user.value(), frontend.reporter()); found.has_error())
    return frontend.fail(found.error());
  auto finder = finder_of(command, user.value(), frontend.reporter());
  if (finder.has_error()) return frontend.fail(finder.error());
  command.transfer.find_again = std::move(finder).value();
  return transfer_files(command, user.value(), frontend);
}

}  // namespace onehop::tool
