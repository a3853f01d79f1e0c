#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Progress in files as well as bytes: progress_program_test.py ONEHOP [WORD].

Goal:   events, the line on the terminal and onehop watch count files at both ends, and forecast
        once all are known of.
Method: the real program over loopback, at a rate that takes seconds; a terminal as a person has it.
Bounds: exact counts; of a forecast that there is one.
"""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

from loopback import Loopback, check
from program import CODE, PATIENCE, End, main

FILES, BYTES = 400, 2000


def make_tree(folder) -> Path:
    top = folder / "tree"
    top.mkdir()
    for i in range(FILES):
        (top / f"{i}").write_bytes(os.urandom(BYTES))
    return top


def send(world, top) -> Any:
    return world.start("send", top, "--to", world.address, "--json", "--max-rate", "2Mbit")


def is_forecast(event) -> bool:
    return event["eta_seconds"] is not None


def test_events(onehop) -> None:
    with Loopback(onehop) as world:
        receiver = world.receive()
        sender = send(world, make_tree(world.work))
        sender.wait_for(lambda: any(is_forecast(event) for event in sender.events("interval")),
                        "data flows")
        done = subprocess.run([onehop, "watch", str(sender.process.pid), "--once", "--json"],
                              capture_output=True, text=True, timeout=PATIENCE)
        state = json.loads(done.stdout)
        check(state["files_total"] == FILES and state["is_all_known"], f"watch: {state}")
        check(0 <= state["files_done"] < FILES and state["eta_seconds"] is not None, f"{state}")
        for end in (sender, receiver):
            check(end.code() == 0, end.text())
            intervals = end.events("interval")
            check(len(intervals) > 1, f"it took seconds: {intervals}")
            counts = [event["files_done"] for event in intervals]
            check(counts == sorted(counts) and 0 < counts[-1] <= FILES, f"it grows: {counts}")
            check({(event["files_total"], event["is_all_known"]) for event in intervals}
                  == {(FILES, True)}, f"all are known of: {intervals}")
            # The first may come before there is a rate to forecast with.
            known = [is_forecast(event) for event in intervals]
            check(True in known and all(known[known.index(True):]), f"{intervals}")


def test_terminal(onehop) -> None:
    with Loopback(onehop) as world:
        person, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        receiver = End([onehop, "recv", "--once", "--dir", str(world.target), "--listen",
                        world.address], world.work, "seen", CODE, terminal)
        os.close(terminal)
        sender = world.start("send", make_tree(world.work), "--to", world.address, "--wait", 20,
                             "--max-rate", "2Mbit")
        said = b""
        try:
            while part := os.read(person, 4096):
                said += part
        except OSError:  # the other end is closed
            pass
        os.close(person)
        check(sender.code() == 0 and receiver.code() == 0, f"{said!r}")
        lines = [line.removesuffix("\x1b[K") for line in re.split("[\r\n]", said.decode())]
        seen = [line for line in lines if "ETA" in line]
        check(seen, f"there is a line: {lines}")
        check(max(map(len, seen)) < 80, f"of less than 80 columns: {seen}")
        check(all(re.search(rf" \d+/{FILES} files ", line) for line in seen), f"{seen}")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
