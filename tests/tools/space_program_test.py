#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Room on the receiver's disk: space_program_test.py ONEHOP [WORD].

Goal:   a part of a tree that needs more inodes than are free is refused before any of it is
        written, with both numbers; --no-space-check takes it, and the disk itself refuses.
Method: the real program into ext4 with few inodes, as root.
Bounds: exact, but for what the file system keeps for itself.
"""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from disks import Disk
from loopback import Loopback, check
from program import main

RESERVE = 16  # DestinationOptions::reserve_files


def make_tree(folder, count) -> Path:
    """make_tree has `count` files in one folder, `tree`."""
    top = folder / "tree"
    top.mkdir()
    for i in range(count):
        (top / f"{i}").write_text(f"{i}")
    return top


def transfer(world, top, *recv) -> tuple[Any, Any]:
    receiver = world.receive(*recv)
    sender = world.start("send", top, "--to", world.address, "--json")
    sender.code(), receiver.code()
    return sender, receiver


def test_few_inodes(onehop) -> None:
    with Loopback(onehop) as world, Disk("ext4", world, inodes=200):
        free = os.statvfs(world.target).f_favail
        top = make_tree(world.work, free)
        sender, receiver = transfer(world, top)
        check((sender.process.returncode, receiver.process.returncode) == (5, 8), receiver.text())
        said = re.search(r"receive (\d+) files and folders: the disk has inodes for (\d+) of them "
                         r"beside its reserve\. .*--no-space-check", receiver.text())
        check(said is not None, f"both numbers and the remedy: {receiver.text()}")
        numbers = tuple(map(int, said.groups())) if said else ()
        check(numbers == (free + 1, free - RESERVE), f"{numbers}, {free} are free")
        check("inodes" in sender.text(), f"the sender is told: {sender.text()}")
        check(not list(world.target.iterdir()), "nothing was written")

        # Unasked, the disk says it.
        sender, receiver = transfer(world, top, "--no-space-check")
        check(receiver.process.returncode == 8 and "No space left" in receiver.text(),
              f"{receiver.text()}")

        # With what is there already, the rest fits: of what was delivered nothing is needed.
        for path in top.iterdir():
            if int(path.name) > free - RESERVE - 20:
                path.unlink()
        sender, receiver = transfer(world, top)
        check(receiver.process.returncode == 0, f"{receiver.text()}")
        check(len(list((world.target / "tree").iterdir())) == len(list(top.iterdir())), "all of it")


def test_parts(onehop) -> None:
    """A tree of several parts, of which a later one does not fit."""
    with Loopback(onehop) as world, Disk("ext4", world, inodes=10_000):
        free = os.statvfs(world.target).f_favail
        check(9_000 < free < 12_000, f"{free}")
        top = make_tree(world.work, free + 100)
        sender, receiver = transfer(world, top)
        check(receiver.process.returncode == 8 and "inodes" in receiver.text(), receiver.text())
        check(os.statvfs(world.target).f_favail > 0, "it was seen before the disk was full")

        # One that fits does, to the last part: an inode that is used is counted once. On an empty
        # disk: what is overwritten needs a second one until it has its name.
        shutil.rmtree(world.target / "tree", ignore_errors=True)
        for path in top.iterdir():
            if int(path.name) >= free - RESERVE - 20:
                path.unlink()
        sender, receiver = transfer(world, top)
        check(receiver.process.returncode == 0, f"{receiver.text()}")
        check(len(list((world.target / "tree").iterdir())) == free - RESERVE - 20, "all of it")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
