#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Folders of which something cannot be sent: left_out_program_test.py ONEHOP [WORD].

Goal:   what cannot be sent is named, costs nothing else, and the run ends with 12; links that are
        skipped are no failure, however many there are.
Method: the real program over trees with thousands of links, names that clash, files that vanish,
        that are written to all the time, and that a FUSE disk cannot read (ONEHOP_SLOW_DISK).
Bounds: exact.
"""

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from disks import Disk
from loopback import MB, Loopback, check
from program import main


def transfer(here, folder, *options, meanwhile=None) -> Any:
    """transfer sends what a folder holds, and returns the sender, which has ended."""
    receiver = here.receive()
    sender = here.start("send", f"{folder}/", "--to", here.address, "--json", "--report",
                        here.work / "report", *options)
    if meanwhile:
        receiver.wait_for(lambda: any(here.target.glob(".*.part")), "data comes")
        meanwhile(sender)
    sender.code()
    check(receiver.code() == 0, f"recv: {receiver.text()}")
    return sender


def left_out(here, sender, code) -> dict[str, str]:
    check(sender.process.returncode == code,
          f"{code}, not {sender.process.returncode}: {sender.text()}")
    listed = json.loads((here.work / "report").read_text())["left_out"]
    return {Path(item["path"]).name: item["kind"] for item in listed}


def same(here, folder, names) -> None:
    arrived = {str(path.relative_to(here.target)): path.read_bytes()
               for path in here.target.rglob("*") if path.is_file() and path.suffix != ".part"
               and not path.name.startswith(".")}
    check(arrived == {name: (folder / name).read_bytes() for name in names}, f"{sorted(arrived)}")


def test_links_without_end_are_skipped_and_the_files_arrive(onehop) -> None:
    for before, after in ((5000, 0), (0, 2048), (2049, 2049)):
        with Loopback(onehop) as here:
            folder = here.work / "tree"
            folder.mkdir()
            for i in range(before):
                (folder / f"before{i}").symlink_to("file")
            (folder / "file").write_text("content")
            for i in range(after):
                (folder / f"after{i}").symlink_to("file")
            told = left_out(here, transfer(here, folder), 0)
            check(len(told) == before + after and set(told.values()) == {"symlink_skipped"},
                  f"{len(told)} links")
            same(here, folder, ["file"])


def test_a_folder_of_links_alone_is_an_error(onehop) -> None:
    for links in (2048, 5000):
        with Loopback(onehop) as here:
            folder = here.work / "tree"
            folder.mkdir()
            for i in range(links):
                (folder / str(i)).symlink_to("file")
            here.receive()
            here.refused("send", f"{folder}/", "--to", here.address, code=8)


def test_a_part_that_an_earlier_session_left_is_named_and_the_rest_arrives(onehop) -> None:
    with Loopback(onehop) as here:
        folder = here.work / "tree"
        folder.mkdir()
        for name in ("x", ".x.part", ".y.part", "z"):
            (folder / name).write_text(name)
        here.receive = lambda receive=here.receive: receive("--allow-hidden")
        told = left_out(here, transfer(here, folder), 12)
        check(told == {".x.part": "name_refused"}, f"{told}")
        same(here, folder, ["x", "z"])
        check((here.target / ".y.part").read_text() == ".y.part", "one that is nobody's arrives")


def test_the_only_file_vanishes(onehop) -> None:
    with Loopback(onehop) as here:
        folder = here.work / "tree"
        folder.mkdir()
        (folder / "gone").write_bytes(os.urandom(64 * MB))
        told = left_out(here, transfer(here, folder, "--law", "fixed:160M",
                                       meanwhile=lambda _: (folder / "gone").unlink()), 12)
        check(told == {"gone": "vanished"}, f"{told}")
        same(here, folder, [])


def test_options_that_are_named_are_of_the_other_end(onehop) -> None:
    """A sender has no --allow-hidden."""
    with Loopback(onehop) as here:
        (here.work / ".hidden").write_bytes(b"this one")
        receiver = here.start("recv", "--once", "--dir", here.target, "--listen", here.address,
                              "--json")
        receiver.wait_for(lambda: receiver.events("start"), "recv can accept")
        sender = here.refused("send", here.work / ".hidden", "--to", here.address, code=5,
                              words=("--allow-hidden", "of `onehop recv` there"))
        check(receiver.code() == 8 and "there" not in receiver.text().split("--allow-hidden")[1],
              f"{receiver.text()}")
        check(sender.text().count("\n") <= 2, f"in a line: {sender.text()}")


def test_a_file_that_is_written_to_all_the_time_is_left_out(onehop) -> None:
    with Loopback(onehop) as here:
        folder = here.work / "tree"
        folder.mkdir()
        for name in ("a", "log", "z"):
            (folder / name).write_bytes(os.urandom(4 * MB))
        is_over = threading.Event()

        def write() -> None:
            with open(folder / "log", "ab") as log:
                while not is_over.wait(0.002):
                    log.write(b"line\n")
                    log.flush()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            told = left_out(here, transfer(here, folder, "--law", "fixed:40M"), 12)
        finally:
            is_over.set()
            writer.join()
        check(told == {"log": "changed"}, f"{told}")
        same(here, folder, ["a", "z"])


def test_a_file_that_the_disk_cannot_read_is_left_out(onehop) -> None:
    with Loopback(onehop) as here:
        folder = here.work / "tree"
        folder.mkdir()
        with Disk("fuse", here, target=folder, options=("--error", "read:bad=EIO")) as disk:
            names = [f"{i}{size}" for i in range(20) for size in ("small", "large")]
            for name in [*names, "9bad", "large.bad"]:
                (disk.image / name).write_bytes(os.urandom(MB if "large" in name else 1000))
            told = left_out(here, transfer(here, folder), 12)
            check(told == {"9bad": "unreadable", "large.bad": "unreadable"}, f"{told}")
            same(here, folder, names)


sys.exit(main(globals(), needs_root=False))
