// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/p2p/ipv4_keeper.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "control/p2p/group_ipv4.hpp"
#include "engine/base/system/descriptors.hpp"
#include "tools/onehop/p2p/stop_signals.hpp"

namespace onehop::p2p {

namespace {

constexpr unsigned nobody = 65534;  // /proc/sys/kernel/overflowuid, also Debian's user "nobody"
/// Where packages put it. PATH is the caller's, and may be a user's under sudo.
constexpr std::array<const char*, 3> dnsmasq_places{"/usr/sbin/dnsmasq", "/usr/bin/dnsmasq",
                                                    "/usr/local/sbin/dnsmasq"};
/// Addresses .10 to .41; those below are left for who sets one by hand. Drivers take 8 to 32
/// stations, and phones come with a new hardware address each time. Fewer: such a phone finds the
/// pool full of its former selves.
constexpr Ipv4 pool_offset = 9, pool_addresses = 32;
/// Between two looks whether the group is there. Longer: the address stays for so long on an
/// interface that outlives its group.
constexpr int look_interval_ms = 1000;
/// dnsmasq takes its port within milliseconds, or ends.
constexpr int start_limit_ms = 5000, start_step_ms = 10;

constexpr unsigned keeper_rights = 1U << CAP_NET_ADMIN;
constexpr unsigned server_rights = keeper_rights | 1U << CAP_NET_BIND_SERVICE;

/// keep_rights keeps these and no others, for programs that are started from here, too.
bool keep_rights(unsigned rights) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> kept{};
  kept[0].effective = kept[0].permitted = kept[0].inheritable = rights;
  if (::syscall(SYS_capset, &header, kept.data()) != 0 ||
      ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
    return false;
  for (const int right : {CAP_NET_ADMIN, CAP_NET_BIND_SERVICE})
    if ((rights & 1U << right) != 0 &&
        ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, right, 0, 0) != 0)
      return false;
  return true;
}

/// give_up_privilege: one that is not root and has file capabilities stays who it is.
bool give_up_privilege() {
  if (::geteuid() == 0 &&
      (::prctl(PR_SET_KEEPCAPS, 1) != 0 || ::setgroups(0, nullptr) != 0 ||
       ::setresgid(nobody, nobody, nobody) != 0 || ::setresuid(nobody, nobody, nobody) != 0))
    return false;
  return keep_rights(server_rights) && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
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
  close_descriptors_but(fd);
}

std::string text_of(Ipv4 address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255,
                     address & 255);
}

/// Nothing is read from the system's configuration, and nothing is written. No router and no name
/// server are given: a phone keeps its way into the internet. It is the one server of its link, so
/// an address that a client remembers is granted or refused at once.
std::vector<std::string> words_of(const GroupIpv4& ipv4) {
  const Ipv4 first = ipv4.own() + pool_offset;
  return {
      "dnsmasq",
      "--keep-in-foreground",
      "--conf-file=/dev/null",
      "--pid-file",
      "--leasefile-ro",
      "--log-facility=/dev/null",
      "--port=0",
      "--bind-interfaces",
      "--interface=" + ipv4.interface(),
      "--except-interface=lo",
      "--no-ping",
      "--dhcp-authoritative",
      "--dhcp-sequential-ip",
      "--dhcp-option=3",
      "--dhcp-option=6",
      fmt::format("--dhcp-lease-max={}", pool_addresses),
      fmt::format("--dhcp-range={},{},{},10m", text_of(first), text_of(first + pool_addresses - 1),
                  text_of(~Ipv4{0} << (32 - group_prefix_bits)))};
}

/// start_server returns dnsmasq's process, which ends with this one; what it complains about comes
/// out of `said`.
pid_t start_server(const char* program, const GroupIpv4& ipv4, Fd& said) {
  std::vector<std::string> words = words_of(ipv4);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  char language[] = "LC_ALL=C";
  char* const environment[] = {language, nullptr};
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return -1;
  said = Fd{pipe[0]};
  const Fd in{pipe[1]};
  const pid_t keeper = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  (void)::dup2(in.get(), STDERR_FILENO);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() == keeper) ::execve(program, argv.data(), environment);
  ::_exit(127);
}

/// wait_for_server returns the empty string once dnsmasq has its port, or why it has not.
std::string wait_for_server(const GroupIpv4& ipv4, pid_t& server, const Fd& said) {
  for (int waited = 0; waited < start_limit_ms; waited += start_step_ms) {
    if (ipv4.has_server()) return {};
    if (::waitpid(server, nullptr, WNOHANG) == server) {
      server = 0;
      std::array<char, 400> text{};
      const ssize_t got = ::read(said.get(), text.data(), text.size());
      std::string words(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      std::ranges::replace(words, '\n', ' ');
      words.erase(0, words.find_first_not_of(' '));
      words.erase(words.find_last_not_of(' ') + 1);
      return words.empty() ? "dnsmasq has ended at once" : words;
    }
    (void)::poll(nullptr, 0, start_step_ms);
  }
  return "dnsmasq has not taken UDP port 67";
}

/// keep writes what is wrong into `report`, or closes it once stations are served.
[[noreturn]] void keep(GroupIpv4& ipv4, const char* program, Fd report) {
  ::prctl(PR_SET_NAME, "onehop-dhcp", 0, 0, 0);
  detach(report.get());
  {
    const StopSignals stop;
    const GroupIpv4 own = std::move(ipv4);
    Fd said;
    pid_t server = 0;
    std::string wrong;
    // Once more where it has ended: a look at the port may have been in its way.
    for (int i = 0; i < 2 && server == 0; ++i) {
      server = start_server(program, own, said);
      wrong = server < 0 ? "a process cannot be started" : wait_for_server(own, server, said);
    }
    if (wrong.empty() && !keep_rights(keeper_rights)) wrong = "rights cannot be given up";
    (void)!::write(report.get(), wrong.data(), wrong.size());
    report.close();
    pollfd waits{stop.fd(), POLLIN, 0};
    while (wrong.empty() && !own.is_over() && ::poll(&waits, 1, look_interval_ms) <= 0) {
      if (::waitpid(server, nullptr, WNOHANG) == 0) continue;
      server = 0;
      break;
    }
    if (server > 0) {
      ::kill(server, SIGTERM);
      (void)::waitpid(server, nullptr, 0);
    }
  }
  ::_exit(0);
}

std::string read_all(const Fd& fd) {
  std::string text;
  std::array<char, 400> part{};
  for (;;) {
    const ssize_t got = ::read(fd.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<void> keep_ipv4(const std::string& interface) {
  const std::string attempt = "start what gives IPv4 addresses on " + interface;
  const auto* const program = std::ranges::find_if(
      dnsmasq_places, [](const char* place) { return ::access(place, X_OK) == 0; });
  if (program == dnsmasq_places.end())
    return Error{ExitCode::io_unavailable, attempt, "dnsmasq is not installed",
                 "apt-get install dnsmasq-base", ENOENT};
  ONEHOP_TRY(ipv4, GroupIpv4::open(interface));
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return errno_error(ExitCode::internal_error, attempt);
  const Fd answer{pipe[0]};
  Fd report{pipe[1]};
  std::fflush(nullptr);  // what is buffered is ours to write
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(ExitCode::internal_error, attempt);
  if (pid == 0) {
    if (!give_up_privilege()) ::_exit(errno);
    // Once more, so that init waits for it and not we.
    const pid_t again = ::fork();
    if (again == 0) keep(ipv4, *program, std::move(report));
    ::_exit(again < 0 ? errno : 0);
  }
  report.close();
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0)
    return errno_error(ExitCode::internal_error, attempt, {},
                       WIFEXITED(status) ? WEXITSTATUS(status) : EINTR);
  ipv4.abandon();
  if (std::string wrong = read_all(answer); !wrong.empty())
    return Error{ExitCode::io_unavailable, attempt, std::move(wrong),
                 "Run 'dnsmasq --test', or see its log", 0};
  return success();
}

}  // namespace onehop::p2p
