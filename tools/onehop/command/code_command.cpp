// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// onehop code: a code of full length for both ends of a script.
#include <unistd.h>

#include "control/session/code/code.hpp"
#include "tools/onehop/command/commands.hpp"
#include "tools/onehop/text/terminal.hpp"

namespace onehop::tool {

ExitCode code_command() {
  auto code = session::make_code();
  if (code.has_value()) {
    // Past stdio, whose buffer would keep it.
    const std::string_view text = code.value().text();
    const bool is_out =
        ::write(STDOUT_FILENO, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        ::write(STDOUT_FILENO, "\n", 1) == 1;
    if (is_out) return ExitCode::done;
    code = errno_error(ExitCode::local_file_error, "write the code to standard output",
                       "Look at where it goes");
  }
  tell(fitted("onehop code: " + code.error().message() + "\n"));
  return code.error().code;
}

}  // namespace onehop::tool
