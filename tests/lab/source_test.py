#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Files that change while they are sent (threat C3): source_test.py ONEHOP [WORD].

Goal:   what changed once is sent again as it is then, what keeps changing gets no final name.
Method: the real program in the lab; the test writes to what is being sent, or replaces it.
Bounds: none on time but that everything ends by itself.
"""

import os
import sys
import time
from pathlib import Path

from fault_test import DISK, MB, OK, REFUSED, ends_with
from program import World, check, main


def overwrite(path, at) -> None:
    with open(path, "r+b") as changed:
        changed.seek(at)
        changed.write(b"changed while it is sent")


def test_C3_a_source_that_changes_once_is_sent_again_as_it_is_then(onehop) -> None:
    def grow(path) -> None:
        with open(path, "ab") as changed:
            changed.write(b"more" * MB)

    def shrink(path) -> None:
        os.truncate(path, 5 * MB)

    for io, change in (("udp", lambda path: overwrite(path, 35 * MB)), ("afxdp", grow),
                       ("afxdp", shrink)):
        with World(onehop, 'rate = "200Mbit"\n') as world:
            files = [
                world.file(2 * MB, "first.bin"),
                world.file(40 * MB),
                world.file(1 * MB, "last.bin")
            ]
            receiver = world.receive(io)
            sender = world.send(files, io)
            world.wait_bytes(10 * MB, receiver)
            change(files[1])
            ends_with(sender, OK, "the source has changed once, the sender")
            ends_with(receiver, OK, "the source has changed once, the receiver")
            for path in files:
                world.check_same(path)
            check(world.names() == sorted(path.name for path in files),
                  f"nothing else is left: {world.names()}")
            check("sent again" in sender.text(), f"the user is told: {sender.text()}")
            for end in (sender, receiver):
                check(end.end()["files_total"] == 3, "each file is counted once")
                check(end.end()["bytes_total"] == sum(path.stat().st_size for path in files),
                      "each byte is counted once")


def replace(path) -> None:
    path.with_name("new").write_bytes(b"another file" * MB)
    path.with_name("new").rename(path)


def test_C3_a_source_that_another_file_replaces(onehop) -> None:
    """In a folder that is sent it is sent again. A sender that was given its path alone may read
    the file that stood there when it began, and no other: the next run sends the new one."""
    for is_folder in (True, False):
        with World(onehop, 'rate = "200Mbit"\n') as world:
            folder = world.work / "tree"
            folder.mkdir()
            path = world.file(40 * MB).rename(folder / "file.bin")
            sent = folder if is_folder else path
            receiver = world.receive()
            sender = world.send(sent)
            world.wait_bytes(10 * MB, receiver)
            replace(path)
            if not is_folder:
                ends_with(sender, DISK, "the sender that may not read it")
                check("run the same command again" in " ".join(sender.text().split()),
                      f"the remedy: {sender.text()}")
                receiver.code()
                receiver = world.receive()
                sender = world.send(sent)
            ends_with(sender, OK, "the sender")
            ends_with(receiver, OK, "the receiver")
            arrived = world.target / (Path("tree/file.bin") if is_folder else "file.bin")
            check(arrived.read_bytes() == path.read_bytes(), "it is the new one")


def test_C3_a_source_that_keeps_changing_gets_no_final_name(onehop) -> None:
    with World(onehop, 'rate = "200Mbit"\n') as world:
        path = world.file(100 * MB)  # more than is read ahead: a smaller one may be between changes
        receiver = world.receive()
        sender = world.send(path)
        while sender.process.poll() is None:
            overwrite(path, 99 * MB)
            time.sleep(0.1)
        ends_with(sender, DISK, "the source changed twice, the sender")
        ends_with(receiver, REFUSED, "the source changed twice, the receiver")
        check("changed" in sender.text() and "again" in sender.text(),
              f"the line tells why: {sender.text()}")
        check(path.name not in world.names(), "no mixed file has its final name")


if __name__ == "__main__":
    sys.exit(main(globals()))
