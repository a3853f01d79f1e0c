#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What gives way to an entry: gives_way_program_test.py ONEHOP [WORD].

Goal:   a file is replaced by a folder only as its user said, and only where something comes into
        that. What an earlier session left of an entry that is left out is there for the next one.
Method: the real program, with a person at a terminal, below a mount, after SIGKILL.
Bounds: exact; of 8 MB that were interrupted 1 MB is not sent again at least.
"""

import contextlib
import os
import pty
import shutil
import stat
import sys

from barred import OURS, as_user, check_rest, make_tree, names, session
from loopback import MB, Loopback, check
from program import CODE, End, Skip, main
from program import run as command


def test_a_folder_over_a_file_as_a_person_says(onehop) -> None:
    """The answer is for what comes into the folder, too."""
    with Loopback(onehop) as world:
        top = make_tree(world.work)
        (world.target / "tree").mkdir()
        for name in ("a.txt", "sub"):
            (world.target / "tree" / name).write_text("of somebody")
        person, terminal = pty.openpty()
        try:
            receiver = End([world.onehop, "recv", "--once", "--dir", str(world.target), "--listen",
                            world.address, "--json", "--on-exist", "ask"], world.work, "asked",
                           CODE, terminal)
            receiver.wait_for(lambda: receiver.events("start"), "recv can accept")
            sender = world.start("send", top, "--to", world.address)
            said = b""
            while b"anything else refuses" not in said:
                said += os.read(person, 1000)
            os.write(person, b"o\n")
            codes = sender.code(), receiver.code()
            check(codes == (0, 0), f"{codes}: {receiver.text()}")
        finally:
            os.close(terminal)
            os.close(person)
        check_rest(world, top, {})


def test_a_file_stays_where_nothing_comes(onehop) -> None:
    """All that was to be in its place is refused, as it is another file system."""
    if os.geteuid() != 0:
        raise Skip("mounts need root")
    with Loopback(onehop) as world:
        top, there = world.work / "tree", world.target / "tree"
        (top / "sub/deep").mkdir(parents=True)
        (top / "sub/deep/file").write_text("content")
        for i in range(40):
            (top / f"sub/{i}").write_text("content")
        there.mkdir()
        command("mount", "-t", "tmpfs", "none", there)
        try:
            (there / "sub").write_text("precious")
            for policy in ("overwrite", "resume", "overwrite"):
                codes, told, text = session(world, top, policy)
                check(codes == (12, 12), f"{policy}: {codes}: {text}")
                check(set(told) == {f"tree/{name}" for name in names(top)}, f"{policy}: {told}")
                check((there / "sub").read_text() == "precious", f"{policy}: nothing is lost")
        finally:
            command("umount", there)


def test_a_part_of_what_is_left_out_stays(onehop) -> None:
    """Another session may take it."""
    with Loopback(onehop) as world:
        top = world.work / "tree"
        top.mkdir()
        (top / "large").write_bytes(os.urandom(8 * MB))
        receiver = world.receive()
        sender = world.start("send", top, "--to", world.address, "--max-rate", "100Mbit")

        def grows() -> bool:
            with contextlib.suppress(FileNotFoundError):  # what is listed may be renamed meanwhile
                return any(path.stat().st_blocks * 512 > 2 * MB
                           for path in world.target.rglob("*.part"))
            return False

        receiver.wait_for(grows, "it grows")
        for end in (receiver, sender):
            end.process.kill()
            end.process.wait()
        (world.target / "tree/large").mkdir()
        (world.target / "tree/large/own").write_text("precious")
        codes, told, text = session(world, top, "resume")
        check(codes == (12, 12) and set(told) == {"tree/large"}, f"{codes} {told}: {text}")
        shutil.rmtree(world.target / "tree/large")
        receiver = world.receive()
        sender = world.start("send", top, "--to", world.address)
        codes = sender.code(), receiver.code()
        check(codes == (0, 0), f"{codes}: {receiver.text()}")
        check(receiver.end()["bytes_skipped_total"] > MB, f"it is resumed: {receiver.end()}")
        check_rest(world, top, {})


def test_a_folder_of_another_group_keeps_its_bit(onehop) -> None:
    """Whoever is not of the group cannot give the bit back, so the folder stays closed."""
    with Loopback(onehop) as world:
        as_user(world)
        top = make_tree(world.work)
        there = world.target / "tree/sub"
        there.mkdir(parents=True)
        os.chown(there.parent, OURS, OURS)
        os.chown(there, OURS, OURS - 1)
        there.chmod(0o2555)
        codes, told, text = session(world, top)
        check(codes == (12, 12) and "tree/sub/b.txt" in told, f"{codes}: {told} {text}")
        check(stat.S_IMODE(there.stat().st_mode) == 0o2555, f"{there.stat().st_mode:o}")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
