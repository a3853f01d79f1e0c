#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A limit on the size of files (ulimit -f): file_limit_program_test.py ONEHOP [WORD].

Goal:   a file that grows past it is an error of the disk, typed at both ends, and no signal's end.
Method: the real program over loopback, the limit set on one end alone.
Bounds: none but exit codes.
"""

import sys

from loopback import MB, Loopback, check
from program import main

LIMIT = ["bash", "-c", 'ulimit -f 1000; exec "$@"', "limited"]  # KiB, each end's own


def test_Z3_what_a_receiver_may_not_write_is_left_out(onehop) -> None:
    with Loopback(onehop) as world:
        path = world.file(8 * MB)
        world.prefix = LIMIT
        receiver = world.receive()
        world.prefix = []
        sender = world.start("send", path, "--to", world.address, "--json")
        check(receiver.code() == 12, f"{receiver.process.returncode}: {receiver.text()}")
        check("larger than a file may be" in receiver.text(), receiver.text())
        check(sender.code() == 12, f"{sender.process.returncode}: {sender.text()}")
        check(not (world.target / path.name).exists(), "nothing has its name")


def test_Z3_a_trace_that_grows_too_large_is_told_of(onehop) -> None:
    """What is written beside the files is the program's own, and no reason to end unsaid."""
    with Loopback(onehop) as world:
        path = world.file(8 * MB)
        receiver = world.receive()
        world.prefix = ["bash", "-c", 'ulimit -f 1; exec "$@"', "limited"]
        sender = world.start("send", path, "--to", world.address, "--json", "--max-rate", "40Mbit",
                             "--trace", world.work / "trace.csv")
        check(sender.code() == 0, f"{sender.process.returncode}: {sender.text()}")
        check("trace" in sender.text(), sender.text())
        check(receiver.code() == 0, receiver.text())


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
