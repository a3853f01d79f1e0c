// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/confine/helper_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "engine/base/system/descriptors.hpp"
#include "tools/onehop/confine/capabilities.hpp"

namespace onehop::confine {

namespace {

/// keep_alone closes all descriptors but the standard streams and `kept`, which it returns.
Fd keep_alone(const Fd& kept) {
  // Not in the place of a standard stream that the program was started without.
  Fd moved{::fcntl(kept.get(), F_DUPFD_CLOEXEC, 3)};
  close_descriptors_but(moved.get());
  return moved;
}

}  // namespace

Result<HelperProcess> start_helper(const char* name, const std::function<void(Fd)>& serve) {
  const std::string attempt = std::string{"start the process "} + name;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_error(ExitCode::internal_error, attempt);
  Fd ours{ends[0]};
  const Fd theirs{ends[1]};
  std::fflush(nullptr);  // what is buffered is ours to write
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(ExitCode::internal_error, attempt);
  if (pid > 0) return HelperProcess{std::move(ours), pid};
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE})
    (void)std::signal(number, SIG_IGN);
  ::prctl(PR_SET_NAME, name, 0, 0, 0);
  serve(keep_alone(theirs));
  ::_exit(0);
}

Result<Fd> start_powerless_helper(const char* name, void (*serve)(Fd)) {
  ONEHOP_TRY(helper, start_helper(name, [serve](Fd socket) {
               close_streams();
               if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && keep_capabilities(0))
                 serve(std::move(socket));
             }));
  return std::move(helper.socket);
}

void close_streams() {
  const Fd null{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (null.is_open()) (void)::dup2(null.get(), stream);
}

}  // namespace onehop::confine
