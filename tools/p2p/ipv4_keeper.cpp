// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/p2p/ipv4_keeper.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "control/p2p/group_ipv4.hpp"
#include "tools/p2p/stop_signals.hpp"

namespace onehop::p2p {

namespace {

constexpr unsigned nobody = 65534;  // /proc/sys/kernel/overflowuid, also Debian's user "nobody"

/// give_up_privilege: one that is not root and has file capabilities stays who it is.
bool give_up_privilege() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> kept{};
  kept[0].effective = kept[0].permitted = 1U << CAP_NET_ADMIN;
  if (::geteuid() == 0 &&
      (::prctl(PR_SET_KEEPCAPS, 1) != 0 || ::setgroups(0, nullptr) != 0 ||
       ::setresgid(nobody, nobody, nobody) != 0 || ::setresuid(nobody, nobody, nobody) != 0))
    return false;
  return ::syscall(SYS_capset, &header, kept.data()) == 0 &&
         ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

/// detach lets go of what belongs to the one that started it: the terminal, the folder, and all
/// descriptors but `fd`. Whoever reads our output to its end would wait for the group's, and the
/// keeper of the group for this process.
void detach(int fd) {
  (void)::setsid();
  (void)!::chdir("/");
  const Fd null{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    (void)::dup2(null.get(), stream);
  (void)::close_range(STDERR_FILENO + 1, static_cast<unsigned>(fd) - 1, 0);
  (void)::close_range(static_cast<unsigned>(fd) + 1, ~0U, 0);
}

[[noreturn]] void serve(GroupIpv4& ipv4) {
  ::prctl(PR_SET_NAME, "onehop-dhcp", 0, 0, 0);
  detach(ipv4.fd());
  {
    const StopSignals stop;
    GroupIpv4 own = std::move(ipv4);
    own.serve(stop.fd());
  }
  ::_exit(0);
}

}  // namespace

Result<void> keep_ipv4(const std::string& interface) {
  const std::string attempt = "start what gives IPv4 addresses on " + interface;
  ONEHOP_TRY(ipv4, GroupIpv4::open(interface));
  std::fflush(nullptr);  // what is buffered is ours to write
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(ExitCode::internal_error, attempt);
  if (pid == 0) {
    if (!give_up_privilege()) ::_exit(errno);
    // Once more, so that init waits for it and not we.
    const pid_t again = ::fork();
    if (again == 0) serve(ipv4);
    ::_exit(again < 0 ? errno : 0);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0)
    return errno_error(ExitCode::internal_error, attempt, {},
                       WIFEXITED(status) ? WEXITSTATUS(status) : EINTR);
  ipv4.abandon();
  return success();
}

}  // namespace onehop::p2p
