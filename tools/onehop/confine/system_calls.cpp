// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The list: by what a transfer does. Found with strace over both ends, all ports and both ways to
// read and write files, and by what glibc 2.31 to 2.41 call for them on x86-64 and arm64.
#include <sys/syscall.h>

#include "tools/onehop/confine/seccomp.hpp"

// Newer than the headers of Debian 12; numbers from 424 on are alike on all processors.
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

#define ONEHOP_CALL(name) \
  SystemCall { #name, SYS_##name, Let::always }
#define ONEHOP_CALL_IF(name, let) \
  SystemCall { #name, SYS_##name, Let::let }

namespace onehop::confine {

namespace {

constexpr SystemCall list[] = {
    // Data path: first what is called most.
    ONEHOP_CALL(sendmsg),
    ONEHOP_CALL(recvmsg),
    ONEHOP_CALL(sendto),
    ONEHOP_CALL(recvfrom),
    ONEHOP_CALL(sendmmsg),
    ONEHOP_CALL(recvmmsg),
    ONEHOP_CALL(ppoll),
    ONEHOP_CALL(pread64),
    ONEHOP_CALL(pwrite64),
    ONEHOP_CALL(read),
    ONEHOP_CALL(write),
    ONEHOP_CALL(futex),
    ONEHOP_CALL(epoll_pwait),
    ONEHOP_CALL(getsockopt),
    ONEHOP_CALL(clock_nanosleep),
    ONEHOP_CALL_IF(io_uring_enter, by_io_uring),
    ONEHOP_CALL_IF(io_uring_setup, by_io_uring),
    ONEHOP_CALL_IF(io_uring_register, by_io_uring),

    // Files.
    ONEHOP_CALL(readv),
    ONEHOP_CALL(writev),
    ONEHOP_CALL(preadv),
    ONEHOP_CALL(pwritev),
    ONEHOP_CALL(preadv2),
    ONEHOP_CALL(pwritev2),
    ONEHOP_CALL(lseek),
    ONEHOP_CALL(close),
    ONEHOP_CALL(close_range),
    ONEHOP_CALL(fsync),
    ONEHOP_CALL(fdatasync),
    ONEHOP_CALL(sync_file_range),
    ONEHOP_CALL(syncfs),
    ONEHOP_CALL(ftruncate),
    ONEHOP_CALL(fallocate),
    ONEHOP_CALL(fadvise64),
    ONEHOP_CALL(openat),
    ONEHOP_CALL(openat2),
    ONEHOP_CALL(fstat),
    ONEHOP_CALL(newfstatat),
    ONEHOP_CALL(statx),
    ONEHOP_CALL(statfs),
    ONEHOP_CALL(fstatfs),
    ONEHOP_CALL(faccessat),
    ONEHOP_CALL(faccessat2),
    ONEHOP_CALL(readlinkat),
    ONEHOP_CALL(getcwd),
    ONEHOP_CALL(getdents64),
    ONEHOP_CALL(mkdirat),
    ONEHOP_CALL(unlinkat),
    ONEHOP_CALL(renameat),  // on arm64 by rename() as well
    ONEHOP_CALL(renameat2),
    ONEHOP_CALL(linkat),
    ONEHOP_CALL(symlinkat),
    ONEHOP_CALL_IF(fchmod, no_setuid),
    ONEHOP_CALL_IF(fchmodat, by_plain_user_at),
    ONEHOP_CALL(utimensat),
    ONEHOP_CALL(flock),
    ONEHOP_CALL_IF(fcntl, no_owner),
    ONEHOP_CALL(dup),
    ONEHOP_CALL(dup3),
    ONEHOP_CALL(pipe2),
    ONEHOP_CALL(splice),
    ONEHOP_CALL(umask),
    ONEHOP_CALL(memfd_create),
    ONEHOP_CALL_IF(ioctl, no_typing),

    // Memory.
    ONEHOP_CALL(mmap),
    ONEHOP_CALL(munmap),
    ONEHOP_CALL(mprotect),
    ONEHOP_CALL(mremap),
    ONEHOP_CALL(madvise),
    ONEHOP_CALL(brk),
    ONEHOP_CALL(mlock),
    ONEHOP_CALL(munlock),
    ONEHOP_CALL(mincore),
    ONEHOP_CALL(membarrier),

    // Threads and signals. clone3 has its arguments in memory, which a filter cannot read: it is
    // said to be unknown, and glibc then takes clone.
    ONEHOP_CALL_IF(clone, own_thread),
    ONEHOP_CALL(set_robust_list),
    ONEHOP_CALL(rseq),
    ONEHOP_CALL(set_tid_address),
    ONEHOP_CALL(futex_waitv),
    ONEHOP_CALL(exit),
    ONEHOP_CALL(exit_group),
    ONEHOP_CALL(restart_syscall),
    ONEHOP_CALL(gettid),
    ONEHOP_CALL(getpid),
    ONEHOP_CALL(getppid),
    ONEHOP_CALL(sched_yield),
    ONEHOP_CALL(getcpu),
    ONEHOP_CALL(sched_getaffinity),
    ONEHOP_CALL_IF(sched_setaffinity, own_process),
    ONEHOP_CALL(sched_getattr),
    ONEHOP_CALL_IF(sched_setattr, own_process),
    ONEHOP_CALL(sched_getparam),
    ONEHOP_CALL(sched_getscheduler),
    ONEHOP_CALL(getpriority),
    ONEHOP_CALL_IF(prctl, own_settings),
    ONEHOP_CALL(rt_sigaction),
    ONEHOP_CALL(rt_sigprocmask),
    ONEHOP_CALL(rt_sigreturn),
    ONEHOP_CALL(rt_sigtimedwait),
    ONEHOP_CALL(rt_sigsuspend),
    ONEHOP_CALL(sigaltstack),
    ONEHOP_CALL_IF(tgkill, own_process),
    ONEHOP_CALL(wait4),
    ONEHOP_CALL(waitid),
    ONEHOP_CALL(getpgid),

    // Time.
    ONEHOP_CALL(clock_gettime),
    ONEHOP_CALL(clock_getres),
    ONEHOP_CALL(nanosleep),
    ONEHOP_CALL(gettimeofday),
    ONEHOP_CALL(timerfd_create),
    ONEHOP_CALL(timerfd_settime),
    ONEHOP_CALL(timerfd_gettime),

    // Waiting.
    ONEHOP_CALL(pselect6),
    ONEHOP_CALL(epoll_create1),
    ONEHOP_CALL(epoll_ctl),
    ONEHOP_CALL(epoll_pwait2),
    ONEHOP_CALL(eventfd2),
    ONEHOP_CALL(signalfd4),

    // Sockets.
    ONEHOP_CALL_IF(socket, transfer_socket),
    ONEHOP_CALL(socketpair),
    ONEHOP_CALL(bind),
    ONEHOP_CALL(listen),
    ONEHOP_CALL(accept),
    ONEHOP_CALL(accept4),
    ONEHOP_CALL(connect),
    ONEHOP_CALL(getsockname),
    ONEHOP_CALL(getpeername),
    ONEHOP_CALL(setsockopt),
    ONEHOP_CALL(shutdown),

    // What is read of this process and the machine.
    ONEHOP_CALL(getuid),
    ONEHOP_CALL(geteuid),
    ONEHOP_CALL(getgid),
    ONEHOP_CALL(getegid),
    ONEHOP_CALL(getgroups),
    ONEHOP_CALL(getresuid),
    ONEHOP_CALL(getresgid),
    ONEHOP_CALL_IF(prlimit64, own_process),
    ONEHOP_CALL(getrusage),
    ONEHOP_CALL(sysinfo),
    ONEHOP_CALL(uname),
    ONEHOP_CALL(getrandom),
    ONEHOP_CALL(capget),

#ifdef SYS_open  // x86-64: what newer processors have only in the form with a folder
    ONEHOP_CALL(open),
    ONEHOP_CALL(stat),
    ONEHOP_CALL(lstat),
    ONEHOP_CALL(access),
    ONEHOP_CALL(readlink),
    ONEHOP_CALL(mkdir),
    ONEHOP_CALL(rmdir),
    ONEHOP_CALL(unlink),
    ONEHOP_CALL(rename),
    ONEHOP_CALL(link),
    ONEHOP_CALL(symlink),
    ONEHOP_CALL_IF(chmod, by_plain_user),
    ONEHOP_CALL(dup2),
    ONEHOP_CALL(pipe),
    ONEHOP_CALL(poll),
    ONEHOP_CALL(select),
    ONEHOP_CALL(epoll_wait),
    ONEHOP_CALL(epoll_create),
    ONEHOP_CALL(time),
    ONEHOP_CALL(getrlimit),
    ONEHOP_CALL(getpgrp),
#endif
};

}  // namespace

std::span<const SystemCall> system_calls() noexcept { return list; }

std::string_view describe(Let let) noexcept {
  switch (let) {
    case Let::always: break;
    case Let::own_thread: return "a thread of this process";
    case Let::own_process: return "this process alone";
    case Let::transfer_socket: return "TCP, UDP, netlink, Unix datagrams";
    case Let::no_typing: return "nothing typed on a terminal, no signals";
    case Let::no_owner: return "no signals";
    case Let::own_settings: return "names and timer slack of threads, and what is read";
    case Let::no_setuid: return "no set-user-id";
    case Let::by_plain_user:
    case Let::by_plain_user_at: return "no set-user-id, and not by root";
    case Let::by_io_uring: return "with --file-io io_uring";
  }
  return {};
}

}  // namespace onehop::confine
