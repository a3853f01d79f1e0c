// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop send: what the program adds to a sending Transfer.
#include "control/session/code.hpp"
#include "engine/file/source_files.hpp"
#include "tools/onehop/commands.hpp"
#include "tools/onehop/frontend.hpp"
#include "tools/onehop/preflight.hpp"
#include "tools/onehop/privilege.hpp"

namespace onehop::tool {

namespace {

/// check_files sees now what would end the transfer later: a file that cannot be sent, a trace that
/// cannot be written.
Result<void> check_files(const api::SendOptions& options) {
  ONEHOP_TRYV(file::open_source_files(options.paths));
  return check_trace_file(options.common.trace_file);
}

Result<void> open(const SendCommand& command, api::Transfer& transfer) {
  ONEHOP_TRYV(host::result_of(transfer.check()));
  // Before anybody is asked for a code. What sudo started looks at files as its user, later.
  if (!becomes_sudo_user()) {
    ONEHOP_TRYV(check_files(command.transfer));
  }
  ONEHOP_TRYV(host::result_of(transfer.open()));
  ONEHOP_TRY(code, session::read_code({.file = command.output.code_file}));
  ONEHOP_TRYV(host::result_of(transfer.set_code(code.text())));
  ONEHOP_TRY(has_become, become_sudo_user());
  return has_become ? check_files(command.transfer) : success();
}

}  // namespace

ExitCode send_command(SendCommand command) {
  command.transfer.common.command_line = command_line();
  command.transfer.rate_memory_file = rate_memory_file();
  Frontend frontend{command.output, "send"};
  api::Transfer transfer{command.transfer, frontend.handler()};
  if (auto opened = open(command, transfer); !opened.has_value())
    return frontend.fail(opened.error());
  frontend.let_watch();
  return frontend.run(transfer);
}

}  // namespace onehop::tool
