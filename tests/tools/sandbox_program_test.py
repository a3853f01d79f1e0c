#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""onehop in a sandbox of somebody else's: sandbox_program_test.py ONEHOP [WORD].

Goal:   a sandbox that forbids what onehop can do without ends no transfer: openat2, which systemd's
        DynamicUser forbids; with it what an old container runtime does not know; capset, which
        systemd's @privileged forbids, to a user who has nothing to give up. A port that is taken
        ends `recv` before it shows a code.
Method: the real program below a seccomp filter of its own.
Bounds: exact.
"""

import errno
import os
import sys
from pathlib import Path

from loopback import MB, Loopback, check
from program import Skip, main

CLOSE_RANGE, OPENAT2, FACCESSAT2 = 436, 437, 439
STATX, RENAMEAT2, CAPSET = (332, 316, 126) if os.uname().machine == "x86_64" else (291, 276, 91)
USER = 65534


def without(errno_value, *numbers) -> list[str]:
    return [str(word) for number in numbers
            for word in (sys.executable, Path(__file__).parent / "without_syscall.py", number,
                         errno_value)]


def send_tree(world) -> None:
    """A tree with a followed link, and a file that is there."""
    tree = world.work / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "b" / "large").write_bytes(os.urandom(8 * MB))
    for i in range(50):
        (tree / "a" / f"small{i}").write_text(f"{i}")
    (tree / "link").symlink_to("a/b/large")
    (tree / "out").symlink_to("../secret")
    world.text("secret", "it is not below the tree")
    for path in (world.work, tree, world.target):
        path.chmod(0o777)
    receiver = world.receive()
    sender = world.start("send", tree, "--symlinks", "follow-inside", "--to", world.address,
                         "--json")
    codes = sender.code(), receiver.code()
    check(codes == (12, 0), f"{codes}: {sender.text()} {receiver.text()}")
    large = (tree / "a/b/large").read_bytes()
    for name in ("a/b/large", "link"):
        check((world.target / "tree" / name).read_bytes() == large, f"{name} arrived as it was")
    for i in range(50):
        check((world.target / "tree" / "a" / f"small{i}").read_text() == f"{i}", f"small{i}")
    check(not (world.target / "tree" / "out").exists(), "a link that leads out is left out")


def test_a_sandbox_without_openat2(onehop) -> None:
    for errno_value in (errno.ENOSYS, errno.EPERM):
        with Loopback(onehop) as world:
            world.prefix = without(errno_value, OPENAT2)
            send_tree(world)
            clean = world.start("recv", "--clean", world.target)
            check(clean.code() == 0, f"recv --clean: {clean.text()}")


def test_an_old_kernel_or_container_runtime(onehop) -> None:
    """Their answers to what is newer than they are."""
    for errno_value in (errno.ENOSYS, errno.EPERM):
        with Loopback(onehop) as world:
            world.prefix = without(errno_value, OPENAT2, CLOSE_RANGE, FACCESSAT2, STATX, RENAMEAT2)
            send_tree(world)


def test_a_user_in_a_sandbox_without_capset(onehop) -> None:
    with Loopback(onehop) as world:
        if os.geteuid() == 0:
            world.become(USER)
            if world.start("--version").code() != 0:
                raise Skip("no other user can be taken")
        world.prefix = [*world.prefix, *without(errno.EPERM, CAPSET)]
        send_tree(world)


def test_a_port_that_is_taken_shows_no_code(onehop) -> None:
    with Loopback(onehop) as world:
        world.receive()
        for command in ("recv", "pair"):
            taken = ["env", "-u", "ONEHOP_CODE"]
            world.prefix = taken
            more = ("--dir", world.target) if command == "recv" else ()
            world.refused_at_once(command, "--listen", world.address, *more, code=9,
                                  words=("Address already in use", "--listen", "a service"))


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
