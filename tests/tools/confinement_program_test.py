#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Goal:   who finds a hole in a transfer's program can do little with it.
Method: a library in the real program (tests/support/inside) tries from within, when it listens or
        connects, what it must not be able to do; and files arrive all the same, whoever started
        it.
Bounds: each attempt is denied (EPERM, EACCES, ENOSYS). Without confinement most are not. Under an
        emulator that lacks Landlock and seccomp files arrive, by the same users.
"""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from loopback import MB, Loopback, check
from program import Skip, is_confined, main

NOBODY = 65534
DENIED = {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EAFNOSUPPORT}
INSIDE = os.environ["ONEHOP_INSIDE"]
NEVER = ("execve execveat fork vfork ptrace mount umount2 setns unshare chroot pivot_root bpf_prog "
         "init_module finit_module kexec_load reboot keyctl add_key setuid setgid setresuid chown "
         "fchown fchownat mknod mknodat truncate setxattr process_vm_readv pidfd_open kill "
         "perf_event_open userfaultfd name_to_handle_at open_by_handle_at capset clone3").split()
USED = ("openat2 fstatfs accept4 faccessat2 readlinkat prlimit64 getdents64 io_uring_enter "
        "sendmsg recvmmsg futex clone renameat renameat2 utimensat flock").split()


class Shielded(Loopback):
    """A loopback whose folders other users may look into, and whose programs report from inside."""

    def __enter__(self) -> Any:
        super().__enter__()
        self.work.chmod(0o755)
        self.outside = self.work / "outside"
        self.outside.mkdir()
        for name in ("secret", "victim", "renamed"):
            (self.outside / name).write_text("secret")
        self.outside.chmod(0o777)
        self.is_seen = True
        self.abstract = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.abstract.bind(f"\0onehop-test-{os.getpid()}")
        return self

    def __exit__(self, *rest) -> None:
        self.abstract.close()
        super().__exit__(*rest)
        if not self.is_seen and rest == (None, None, None):
            raise Skip("an emulator without Landlock or seccomp denies nothing")

    def inside(self, report, **more) -> list[str]:
        """inside is what a command is started with for the library to be in it."""
        settings = {
            "LD_PRELOAD": INSIDE, "ONEHOP_TEST_REPORT": report,
            "ONEHOP_TEST_OUTSIDE": self.outside,
            "ONEHOP_TEST_ABSTRACT": f"onehop-test-{os.getpid()}"
        } | more
        return ["env", *(f"{key}={value}" for key, value in settings.items())]

    def give(self, user) -> None:
        os.chown(self.target, user, user)

    def transfer(self, receiver_options=(), sender_options=(), receiver=(), sender=(),
                 size=2 * MB) -> Any:
        """transfer sends a file over the loopback; receiver and sender are what the ends are
        started with."""
        path = self.file(size)
        path.chmod(0o640 if os.geteuid() == 0 and not sender else 0o644)
        self.prefix = list(receiver)
        there = self.receive(*receiver_options)
        self.prefix = list(sender)
        here = self.start("send", path, "--to", self.address, "--json", *sender_options)
        check(here.code() == 0, f"send ends with 0: {here.text()}")
        check(there.code() == 0, f"recv ends with 0: {there.text()}")
        arrived = self.target / path.name
        check(arrived.read_bytes() == path.read_bytes(), "the file is there")
        check(arrived.stat().st_mode & 0o777 == path.stat().st_mode & 0o777, "with its mode")
        return here, there

    def check_denied(self, report, who, uid, least=50) -> None:
        found = outcomes(report)
        check(found["uid"] == uid, f"{who} runs as {uid}, not {found['uid']}")
        check(len(found) >= least, f"{who}: {len(found)} attempts")
        if is_emulated() and not is_confined(self.onehop):
            self.is_seen = False
            return
        check(not let_through(report), f"{who} is denied all of it, but not {let_through(report)}")


def is_emulated() -> bool:
    """Whether what was built is for another processor than Python."""
    machine = slice(18, 20)  # e_machine of ELF
    return Path(sys.executable).read_bytes()[machine] != Path(INSIDE).read_bytes()[machine]


def need_root() -> None:
    if os.geteuid() != 0:
        raise Skip("it takes root to become another user")


def as_user(user) -> list[str]:
    code = ("import os,sys;u=int(sys.argv[1]);os.setgroups([]);os.setgid(u);os.setuid(u);"
            "os.execvp(sys.argv[2],sys.argv[2:])")
    return [sys.executable, "-c", code, str(user)]


def reachable_by_others(onehop) -> None:
    result = subprocess.run([*as_user(NOBODY), str(onehop), "--version"], capture_output=True)
    if result.returncode != 0:
        raise Skip("the program's folder is closed to other users")


def outcomes(report) -> dict[str, int]:
    lines = [line.split() for line in Path(report).read_text().splitlines()]
    found = {name: int(value) for name, value in lines}
    check("end" in found, f"all was tried: {found}")
    return found


def let_through(report) -> dict[str, str]:
    return {
        name: errno.errorcode.get(value, "done")
        for name, value in outcomes(report).items()
        if name not in ("uid", "end") and value not in DENIED
    }


def test_D5_attempts_are_let_through_where_nobody_is_confined(onehop) -> None:
    """Else the others would show nothing."""
    if is_emulated():
        raise Skip("Python takes no library that is for another processor")
    with Shielded(onehop) as here:
        report = here.work / "plain"
        listen = "import socket;s=socket.socket();s.bind(('127.0.0.1',0));s.listen()"
        subprocess.run([*here.inside(report), sys.executable, "-c", listen], check=True,
                       stdin=subprocess.DEVNULL)
        done = let_through(report)
        wanted = {"read-outside", "write-outside", "execute", "fork", "kill", "abstract-socket",
                  "unix-stream", "signal-by-owner",
                  "connect-elsewhere", "unshare", "mount", "truncate"}
        if os.geteuid() == 0:
            wanted |= {"read-shadow", "raw-socket", "packet-socket", "setuid", "chroot", "reboot",
                       "chown", "make-device", "process-vm-readv"}
        check(wanted <= set(done), f"let through: {sorted(done)}, not {sorted(wanted - set(done))}")


def test_D5_neither_end_can_do_what_a_transfer_does_not(onehop) -> None:
    """As whoever plays the test: root stays root here, since the folder is root's."""
    with Shielded(onehop) as here:
        reports = here.work / "recv", here.work / "send"
        ends = [here.inside(report, ONEHOP_TEST_NO_XDP=1) for report in reports]
        options = ["--io", "udp"]
        here.transfer(options, options, *ends)
        here.check_denied(reports[0], "recv", os.geteuid())
        here.check_denied(reports[1], "send", os.geteuid())
        if here.is_seen:
            left = sorted(os.listdir(here.outside))
            check((here.outside / "secret").read_text() == "secret", "what is outside is as it was")
            check(left == ["renamed", "secret", "victim"], "and no more")


def test_D5_who_stays_root_becomes_the_folders_owner(onehop) -> None:
    need_root()
    with Shielded(onehop) as here:
        here.give(NOBODY)
        report = here.work / "recv"
        here.transfer(receiver=here.inside(report))
        here.check_denied(report, "recv", NOBODY)
        info = (here.target / "file.bin").stat()
        check((info.st_uid, info.st_gid) == (NOBODY, NOBODY), "the file is the owner's")


def test_D5_user_names_who_it_becomes(onehop) -> None:
    need_root()
    with Shielded(onehop) as here:
        here.give(NOBODY)
        reports = here.work / "recv", here.work / "send"
        ends = [here.inside(report) for report in reports]
        here.file(1).chmod(0o644)
        for name in ("nobody", str(NOBODY)):
            options = ["--user", name]
            here.transfer(options, options, *ends)
            here.check_denied(reports[0], "recv --user", NOBODY)
            here.check_denied(reports[1], "send --user", NOBODY)
        here.refused("recv", "--user", "no-such-user", words=["no-such-user", "--user"])
        here.prefix = as_user(NOBODY)
        here.refused("recv", "--user", "root", "--dir", here.target, code=10, words=["--user"])


def test_D5_started_by_sudo_it_becomes_who_called(onehop) -> None:
    need_root()
    with Shielded(onehop) as here:
        here.give(NOBODY)
        reports = here.work / "recv", here.work / "send"
        sudo = {"SUDO_UID": NOBODY, "SUDO_GID": NOBODY}
        ends = [here.inside(report, **sudo) for report in reports]
        here.transfer([], [], *ends)
        here.check_denied(reports[0], "sudo recv", NOBODY)
        here.check_denied(reports[1], "sudo send", NOBODY)


def test_D5_files_that_the_caller_names_are_read_with_his_rights(onehop) -> None:
    """--config, --exclude-from and --code-file: what sudo gives is not for reading them."""
    need_root()
    with Shielded(onehop) as here:
        closed = here.text("closed", "[recv]\nquick = true\n")
        closed.chmod(0o600)
        here.give(NOBODY)
        here.file(1).chmod(0o644)
        here.prefix = ["env", f"SUDO_UID={NOBODY}", f"SUDO_GID={NOBODY}"]
        denied = os.strerror(errno.EACCES)
        here.refused("recv", "--dir", here.target, "--config", closed, words=["closed"])
        here.refused("send", here.work / "file.bin", "--to", here.address, "--exclude-from", closed,
                     words=["--exclude-from", denied])
        for command in (["send", here.work / "file.bin", "--to", here.address],
                        ["recv", "--dir", here.target, "--listen", here.address]):
            here.refused(*command, "--code-file", closed, words=["code file", denied])
        here.prefix = []
        here.refused("recv", "--dir", here.work / "none", "--config", closed, code=8,
                     words=["none"])  # root's own file, read by root


def test_D5_plain_users_are_confined_as_well(onehop) -> None:
    need_root()
    reachable_by_others(onehop)
    with Shielded(onehop) as here:
        here.give(NOBODY)
        reports = here.work / "recv", here.work / "send"
        for report in reports:
            report.write_text("")
            report.chmod(0o666)
        ends = [[*as_user(NOBODY), *here.inside(report)] for report in reports]
        here.transfer([], [], *ends)
        here.check_denied(reports[0], "recv", NOBODY)
        here.check_denied(reports[1], "send", NOBODY)


def test_D5_a_kernel_without_landlock_or_seccomp_is_named_and_goes_on(onehop) -> None:
    """Both are taken away by a filter around the program, as containers do it."""
    filter_of = str(Path(__file__).resolve().parent / "without_syscall.py")
    landlock_create_ruleset, seccomp = "444", {"x86_64": "317"}.get(os.uname().machine, "277")
    with Shielded(onehop) as here:
        for number, word in ((landlock_create_ruleset, "Landlock"), (seccomp, "seccomp")):
            around = [sys.executable, filter_of, number, str(errno.ENOSYS)]
            for end in here.transfer(receiver=around, sender=around):
                check(word in end.text() and "not confined" in end.text(),
                      f"{word} is named: {end.text()}")
            told = subprocess.run([*around, str(onehop), "--version", "-v"], capture_output=True,
                                  text=True).stdout
            check(any("confine" in line and word in line for line in told.splitlines()), told)


def test_the_list_of_system_calls_is_printed_and_has_none_that_gives_more(onehop) -> None:
    told = subprocess.run([str(onehop), "doctor", "--system-calls"], capture_output=True, text=True,
                          check=True).stdout
    names = [line.split()[0] for line in told.splitlines()]
    check(len(names) > 100 and len(set(names)) == len(names), f"one line each: {len(names)}")
    check(set(USED) <= set(names), f"what is used: {set(USED) - set(names)}")
    check(not set(NEVER) & set(names), f"what is not: {set(NEVER) & set(names)}")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
