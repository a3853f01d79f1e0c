// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop recv: what the program adds to a receiving Transfer.
#include <cstdlib>

#include "control/session/code.hpp"
#include "tools/onehop/commands.hpp"
#include "tools/onehop/frontend.hpp"
#include "tools/onehop/preflight.hpp"
#include "tools/onehop/privilege.hpp"

namespace onehop::tool {

namespace {

/// check_machine sees now what each sender would find out.
Result<void> check_machine(const api::ReceiveOptions& options) {
  ONEHOP_TRY(listen, host::parse_endpoint(options.listen));
  ONEHOP_TRYV(check_folder(options.directory));
  ONEHOP_TRYV(check_trace_file(options.common.trace_file));
  ONEHOP_TRYV(check_interface(options.common.interface));
  return options.common.io == "dpdk" ? success() : check_udp_port(listen);
}

Result<void> open(const RecvCommand& command, api::Transfer& transfer) {
  ONEHOP_TRYV(host::result_of(transfer.check()));
  ONEHOP_TRYV(check_machine(command.transfer));
  ONEHOP_TRYV(host::result_of(transfer.open()));
  if (command.output.code_file.empty() && std::getenv("ONEHOP_CODE") == nullptr) return success();
  ONEHOP_TRY(code,
             session::read_code({.file = command.output.code_file, .is_prompt_allowed = false}));
  return host::result_of(transfer.set_code(code.text()));
}

}  // namespace

ExitCode recv_command(RecvCommand command) {
  Frontend frontend{command.output, "recv"};
  command.transfer.common.command_line = command_line();
  command.transfer.before_files = [&frontend]() -> api::Error {
    if (auto become = become_sudo_user(); !become.has_value()) return host::to_api(become.error());
    frontend.let_watch();
    return {};
  };
  api::Transfer transfer{command.transfer, frontend.handler()};
  if (auto opened = open(command, transfer); !opened.has_value())
    return frontend.fail(opened.error());
  if (!becomes_sudo_user()) frontend.let_watch();  // else at the first offer, as that user
  return frontend.run(transfer);
}

}  // namespace onehop::tool
