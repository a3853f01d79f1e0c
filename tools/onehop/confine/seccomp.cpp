// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#include "tools/onehop/confine/seccomp.hpp"

#include <asm/sockios.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <initializer_list>

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41  // glibc names its arenas with it
#endif

namespace onehop::confine {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t processor = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t processor = AUDIT_ARCH_AARCH64;
#else
#error "seccomp: name this processor's AUDIT_ARCH"
#endif

// futex_waitv; what came later (Linux 5.17 on) is unknown to the list, not refused by it. Numbers
// of x86-64's x32 are above it, too.
constexpr std::uint32_t number_max = 449;

constexpr std::uint32_t allow = SECCOMP_RET_ALLOW, refuse = SECCOMP_RET_ERRNO | EPERM,
                        unknown = SECCOMP_RET_ERRNO | ENOSYS;

/// Program is written forwards: jumps of classic BPF count what they skip.
class Program {
 public:
  void load(std::size_t offset) {
    add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  }
  void load_argument(unsigned index) {
    load(offsetof(seccomp_data, args) + index * sizeof(std::uint64_t));  // its low half
  }
  void give(std::uint32_t verdict) { add(BPF_RET | BPF_K, verdict); }
  void unless_equal_skip(std::uint32_t value, std::uint8_t skipped) {
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped);
  }
  void give_if_equal(std::uint32_t value, std::uint32_t verdict) {
    unless_equal_skip(value, 1);
    give(verdict);
  }
  void give_if_above(std::uint32_t value, std::uint32_t verdict) {
    add(BPF_JMP | BPF_JGT | BPF_K, value, 0, 1);
    give(verdict);
  }
  void give_if_any_bit(std::uint32_t bits, std::uint32_t verdict) {
    add(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    give(verdict);
  }
  /// give_one_of ends with a verdict: `verdict` where what was loaded is one of the values.
  void give_one_of(std::initializer_list<std::uint32_t> values, std::uint32_t verdict,
                   std::uint32_t otherwise) {
    for (const std::uint32_t value : values) give_if_equal(value, verdict);
    give(otherwise);
  }
  void refuse_unless_either(std::uint32_t one, std::uint32_t other) {
    add(BPF_JMP | BPF_JEQ | BPF_K, one, 2, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, other, 1, 0);
    give(refuse);
  }
  void mask(std::uint32_t bits) { add(BPF_ALU | BPF_AND | BPF_K, bits); }
  void append(const Program& part) {
    // One by one: of an insert() g++ 14 says that it overflows.
    for (const sock_filter& each : part.code_) code_.push_back(each);
  }
  [[nodiscard]] std::size_t size() const { return code_.size(); }
  [[nodiscard]] std::vector<sock_filter> code() && { return std::move(code_); }

 private:
  void add(int code, std::uint32_t k, std::uint8_t jt = 0, std::uint8_t jf = 0) {
    code_.push_back({static_cast<std::uint16_t>(code), jt, jf, k});
  }
  std::vector<sock_filter> code_;
};

constexpr std::uint32_t socket_type_mask = 0xf;  // the kernel's: flags stand above it
// What is decided about a Unix socket: two loads' worth of code and its verdicts.
constexpr std::uint8_t unix_skip = 5;

void refuse_setuid(Program& code, unsigned mode_argument) {
  code.load_argument(mode_argument);
  code.give_if_any_bit(S_ISUID, refuse);
  code.give(allow);
}

/// What decides about a call that is on the list; it always ends with a verdict.
Program verdict_on(Let let, const SeccompNeeds& needs, int process) {
  Program code;
  switch (let) {
    case Let::always: code.give(allow); break;
    case Let::by_io_uring: code.give(needs.has_io_uring ? allow : refuse); break;
    case Let::own_thread:
      code.load_argument(0);
      code.give_if_any_bit(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                               CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE,
                           refuse);
      code.give_if_any_bit(CLONE_THREAD, allow);
      code.give(refuse);
      break;
    case Let::own_process:
      code.load_argument(0);
      code.give_one_of({0, static_cast<std::uint32_t>(process)}, allow, refuse);
      break;
    case Let::transfer_socket:
      code.load_argument(0);
      code.give_if_equal(AF_NETLINK, allow);
      // Landlock has no rule for a socket with a name in the file system. The bus and others that
      // do as they are asked listen on streams; the C library asks for interfaces on a datagram.
      code.unless_equal_skip(AF_UNIX, unix_skip);
      code.load_argument(1);
      code.mask(socket_type_mask);
      code.give_one_of({SOCK_DGRAM}, allow, refuse);
      code.refuse_unless_either(AF_INET, AF_INET6);
      code.load_argument(1);
      code.mask(socket_type_mask);
      code.refuse_unless_either(SOCK_STREAM, SOCK_DGRAM);
      code.load_argument(2);  // MPTCP would pass by Landlock's rule for ports
      code.give_one_of({0, IPPROTO_TCP, IPPROTO_UDP}, allow, refuse);
      break;
    case Let::no_typing:
      code.load_argument(1);
      code.give_one_of({TIOCSTI, TIOCLINUX, TIOCSETD, FIOSETOWN, SIOCSPGRP}, refuse, allow);
      break;
    case Let::no_owner:
      code.load_argument(1);
      code.give_one_of({F_SETOWN, F_SETOWN_EX, F_SETSIG}, refuse, allow);
      break;
    case Let::no_setuid: refuse_setuid(code, 1); break;
    case Let::by_plain_user:
    case Let::by_plain_user_at:
      if (needs.is_root)
        code.give(refuse);
      else
        refuse_setuid(code, let == Let::by_plain_user ? 1 : 2);
      break;
    case Let::own_settings:
      code.load_argument(0);
      code.give_one_of(
          {PR_SET_NAME, PR_GET_NAME, PR_SET_TIMERSLACK, PR_GET_TIMERSLACK, PR_GET_DUMPABLE,
           PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP, PR_CAPBSET_READ, PR_SET_VMA},
          allow, refuse);
      break;
  }
  return code;
}

}  // namespace

std::vector<sock_filter> make_filter(const SeccompNeeds& needs, int process) {
  Program calls;
  // 1. Calls of another processor (32 bits) have other numbers.
  calls.load(offsetof(seccomp_data, arch));
  calls.refuse_unless_either(processor, processor);
  calls.load(offsetof(seccomp_data, nr));
  calls.give_if_above(number_max, unknown);
  calls.give_if_equal(SYS_clone3, unknown);

  // 2. The list. Most calls are let through always: the kernel remembers these, and runs no filter.
  for (const SystemCall& call : system_calls()) {
    const Program verdict = verdict_on(call.let, needs, process);
    calls.unless_equal_skip(static_cast<std::uint32_t>(call.number),
                            static_cast<std::uint8_t>(verdict.size()));
    calls.append(verdict);
  }
  calls.give(refuse);

  return std::move(calls).code();
}

bool has_seccomp() noexcept {
  const std::uint32_t action = SECCOMP_RET_ERRNO;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

Result<void> restrict_calls(const SeccompNeeds& needs) {
  std::vector<sock_filter> code = make_filter(needs, ::getpid());
  const sock_fprog program{.len = static_cast<unsigned short>(code.size()), .filter = code.data()};
  const long rc =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  if (rc == 0) return success();
  return errno_error(ExitCode::io_unavailable, "restrict system calls (seccomp)", {},
                     rc > 0 ? EBUSY : -1);
}

}  // namespace onehop::confine
