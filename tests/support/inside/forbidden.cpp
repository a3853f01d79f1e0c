// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A library that LD_PRELOAD puts into a program, to try from inside what the program must not be
// able to do any longer once it listens or connects: what a peer could make it do that has found a
// hole in it.
//
//   listen() or connect() on TCP ─▶ each attempt once ─▶ "name errno" lines to a file that was open
//
// The arguments are such that nothing happens where an attempt is let through: it then fails in
// another way (EINVAL, ENOENT, ...), or does what can be taken back. tests/tools/
// confinement_program_test.py reads the lines, also those of a program that is not confined.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string text_of(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The folder outside of what is sent and received, with a file "secret" in it.
std::string outside(const char* name) { return text_of("ONEHOP_TEST_OUTSIDE") + "/" + name; }

/// Close what an attempt opened, where it did.
long opened(long fd) {
  if (fd >= 0) ::close(static_cast<int>(fd));
  return fd;
}

long connect_abstract() {
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  const std::string name = text_of("ONEHOP_TEST_ABSTRACT");
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const long rc =
      ::syscall(SYS_connect, fd, &address, offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int cause = errno;
  opened(fd);
  errno = cause;
  return rc;
}

long fork_and_end() {
  const long pid = ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) ::_exit(0);
  return pid;
}

/// Of a device that can do no harm.
long make_device(const std::string& path) {
  const long rc = ::syscall(SYS_mknodat, AT_FDCWD, path.c_str(), S_IFCHR | 0600, 1 << 8 | 3);
  if (rc == 0) ::unlink(path.c_str());
  return rc;
}

long make_file(const std::string& path) {
  return opened(::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT, 0600));
}

long read_file(const std::string& path) {
  return opened(::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY, 0));
}

long set_up_ring() {
  io_uring_params params{};
  return opened(::syscall(SYS_io_uring_setup, 1, &params));
}

long call_bpf() {
  char attributes[128] = {};
  constexpr int prog_load = 5;
  return opened(::syscall(SYS_bpf, prog_load, attributes, sizeof attributes));
}

long measure_others() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  return opened(::syscall(SYS_perf_event_open, &attributes, -1, 0, -1, 0));
}

long read_memory_of(pid_t process) {
  char byte = 0;
  iovec here{&byte, 1}, there{nullptr, 1};
  return ::syscall(SYS_process_vm_readv, process, &here, 1, &there, 1, 0);
}

long limit(pid_t process) {
  rlimit same{};
  return ::syscall(SYS_prlimit64, process, RLIMIT_CORE, nullptr, &same);
}

long type_on_terminal() {
  char key = 0;
  return ::syscall(SYS_ioctl, STDIN_FILENO, TIOCSTI, &key);
}

long connect_port(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  const unsigned char address[16] = {AF_INET,
                                     0,
                                     static_cast<unsigned char>(port >> 8),
                                     static_cast<unsigned char>(port & 0xff),
                                     127,
                                     0,
                                     0,
                                     1};
  const long rc = ::syscall(SYS_connect, fd, address, sizeof address);
  const int cause = errno;
  opened(fd);
  errno = cause;
  return rc;
}

void try_all(FILE* out) {
  const auto tell = [out](const char* name, long rc) {
    const int cause = rc < 0 ? errno : 0;
    std::fprintf(out, "%s %d\n", name, cause);
    std::fflush(out);
  };
  const pid_t parent = ::getppid();
  const std::string of_parent = "/proc/" + std::to_string(parent);

  tell("read-shadow", read_file("/etc/shadow"));
  tell("read-outside", read_file(outside("secret")));
  tell("write-outside", make_file(outside("made")));
  tell("mkdir-outside", ::syscall(SYS_mkdirat, AT_FDCWD, outside("folder").c_str(), 0700));
  tell("unlink-outside", ::syscall(SYS_unlinkat, AT_FDCWD, outside("victim").c_str(), 0));
  tell("link-outside", ::syscall(SYS_linkat, AT_FDCWD, outside("secret").c_str(), AT_FDCWD,
                                 outside("linked").c_str(), 0));
  tell("rename-outside", ::syscall(SYS_renameat2, AT_FDCWD, outside("renamed").c_str(), AT_FDCWD,
                                   outside("elsewhere").c_str(), 0));
  tell("truncate", ::syscall(SYS_truncate, outside("secret").c_str(), 6));
  tell("write-sysctl", opened(::open("/proc/sys/vm/drop_caches", O_WRONLY)));
  tell("read-memory-of-init", read_file("/proc/1/mem"));
  tell("read-environment-of-parent", read_file(of_parent + "/environ"));
  tell("make-device", make_device(outside("device")));
  tell("chown", ::syscall(SYS_fchownat, AT_FDCWD, outside("secret").c_str(), ::geteuid(), -1, 0));
  tell("set-attribute", ::syscall(SYS_setxattr, outside("secret").c_str(), "user.x", "x", 1, 0));
  tell("make-setuid", ::syscall(SYS_fchmod, ::fileno(out), 04600));
  if (::geteuid() == 0)
    tell("chmod-by-root", ::syscall(SYS_fchmodat, AT_FDCWD, outside("secret").c_str(), 0600));
  const std::string of_report = "/proc/self/fd/" + std::to_string(::fileno(out));
  tell("make-setuid-by-name", ::syscall(SYS_fchmodat, AT_FDCWD, of_report.c_str(), 04600));
  tell("open-by-handle", ::syscall(SYS_open_by_handle_at, AT_FDCWD, nullptr, O_RDONLY));

  tell("execute", ::syscall(SYS_execve, "/nonexistent", nullptr, nullptr));
  tell("fork", fork_and_end());
  tell("clone3", ::syscall(SYS_clone3, nullptr, 0));
  tell("unshare", ::syscall(SYS_unshare, CLONE_NEWUSER | 1));
  tell("setns", ::syscall(SYS_setns, -1, 0));
  tell("chroot", ::syscall(SYS_chroot, "/"));
  tell("pivot-root", ::syscall(SYS_pivot_root, "/nonexistent", "/nonexistent"));
  tell("mount", ::syscall(SYS_mount, "none", "/nonexistent", "tmpfs", 0, nullptr));
  tell("umount", ::syscall(SYS_umount2, "/nonexistent", 0));
  tell("open-tree", opened(::syscall(SYS_open_tree, AT_FDCWD, "/", 0)));
  tell("setuid", ::syscall(SYS_setuid, 0));
  tell("setresgid", ::syscall(SYS_setresgid, 0, 0, 0));
  tell("setgroups", ::syscall(SYS_setgroups, 0, nullptr));
  tell("capset", ::syscall(SYS_capset, nullptr, nullptr));
  tell("ptrace", ::syscall(SYS_ptrace, PTRACE_SEIZE, parent, 0, 0));
  tell("process-vm-readv", read_memory_of(parent));
  tell("pidfd-open", opened(::syscall(SYS_pidfd_open, parent, 0)));
  tell("kill", ::syscall(SYS_kill, parent, 0));
  tell("tgkill", ::syscall(SYS_tgkill, parent, parent, 0));
  tell("limit-of-parent", limit(parent));
  tell("signal-by-owner", ::syscall(SYS_fcntl, ::fileno(out), F_SETOWN, parent));
  tell("set-dumpable", ::syscall(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0));

  tell("load-module", ::syscall(SYS_init_module, nullptr, 0, nullptr));
  tell("delete-module", ::syscall(SYS_delete_module, "", 0));
  tell("kexec", ::syscall(SYS_kexec_load, 0, 0, nullptr, ~0UL));
  tell("reboot", ::syscall(SYS_reboot, 0, 0, 0, nullptr));
  tell("load-program", call_bpf());
  tell("perf", measure_others());
  tell("userfaultfd", opened(::syscall(SYS_userfaultfd, 0)));
  tell("keyctl", ::syscall(SYS_keyctl, 0, -3, 0));
  tell("add-key", ::syscall(SYS_add_key, nullptr, nullptr, nullptr, 0, 0));
  tell("fanotify", opened(::syscall(SYS_fanotify_init, 0, 0)));
  tell("swapon", ::syscall(SYS_swapon, "/nonexistent", 0));
  tell("acct", ::syscall(SYS_acct, "/nonexistent"));
  tell("hostname", ::syscall(SYS_sethostname, nullptr, -1));
  tell("clock", ::syscall(SYS_clock_settime, 0, nullptr));
  tell("syslog", ::syscall(SYS_syslog, 10, nullptr, 0));
  tell("type-on-terminal", type_on_terminal());

  tell("raw-socket", opened(::syscall(SYS_socket, AF_INET, SOCK_RAW, 1)));
  tell("packet-socket", opened(::syscall(SYS_socket, AF_PACKET, SOCK_RAW, 0)));
  tell("ping-socket", opened(::syscall(SYS_socket, AF_INET, SOCK_DGRAM, IPPROTO_ICMP)));
  tell("mptcp-socket", opened(::syscall(SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_MPTCP)));
  // The system's bus and other services listen on such a socket, which has a name in a file system.
  tell("unix-stream", opened(::syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0)));
  tell("vsock", opened(::syscall(SYS_socket, AF_VSOCK, SOCK_STREAM, 0)));
  tell("abstract-socket", connect_abstract());
  tell("connect-elsewhere", connect_port(1));
  tell("io-uring", set_up_ring());
  if (!text_of("ONEHOP_TEST_NO_XDP").empty())
    tell("xdp-socket", opened(::syscall(SYS_socket, AF_XDP, SOCK_RAW, 0)));
}

FILE* report = nullptr;

/// Before the program could give anything up.
__attribute__((constructor)) void open_report() {
  if (const std::string file = text_of("ONEHOP_TEST_REPORT"); !file.empty())
    report = std::fopen(file.c_str(), "we");
}

void try_once(int socket) {
  static std::atomic<bool> is_done{false};
  int type = 0, domain = 0;
  socklen_t size = sizeof type;
  const bool is_tcp = ::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
                      ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
                      type == SOCK_STREAM && (domain == AF_INET || domain == AF_INET6);
  if (!is_tcp || report == nullptr || is_done.exchange(true)) return;
  const int cause = errno;
  try_all(report);
  std::fprintf(report, "uid %d\nend 0\n", static_cast<int>(::geteuid()));
  std::fclose(report);
  errno = cause;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int listen(int socket, int backlog) noexcept {
  try_once(socket);
  return next<int(int, int)>("listen")(socket, backlog);
}

int connect(int socket, const sockaddr* address, socklen_t size) {
  try_once(socket);
  return next<int(int, const sockaddr*, socklen_t)>("connect")(socket, address, size);
}
}
