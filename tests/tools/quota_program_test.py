#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The quota of a device in a service, over loopback: quota_program_test.py ONEHOP [WORD].

Goal:   no device gets more into its folder than its quota: not by several sessions at once, not by
        names that have no content, and not by a stream.
Method: the real program at all ends, each with a folder of devices of its own.
Bounds: exact.
"""

import sys

from loopback import MB, check
from pair_program_test import DONE, REFUSED
from program import main
from service_program_test import Served


def test_K11_a_quota_holds_for_all_sessions(onehop) -> None:
    with Served(onehop) as world:
        world.done("bob", "peers", "set", "ann", "--quota", "30MB")
        listed = world.done("bob", "peers", "--json").events("device")
        check({one["quota_bytes"] for one in listed} == {30 * MB, None}, f"{listed}")
        world.serve("--quota", "1MB")
        large = world.files_of(2 * MB, "large.bin")
        refused = world.send_as("eve", large)
        check(refused.code() == REFUSED and "the quota is 1" in refused.text(), refused.text())
        check(world.send_as("ann", large).code() == DONE, "a device may have a quota of its own")
        paths = [world.files_of(12 * MB, f"file{i}.bin") for i in range(4)]
        senders = [world.send_as("ann", path, "--max-rate", "100Mbit") for path in paths]
        codes = sorted(sender.code() for sender in senders)
        check(codes == [DONE, DONE, REFUSED, REFUSED], f"two fit beside what is there: {codes}")
        held = sum(path.stat().st_size for path in (world.work / "of-ann").iterdir())
        check(held <= 30 * MB, f"{held} bytes are there")
        (world.work / "of-ann" / "large.bin").unlink()
        check(world.send_as("ann", world.files_of(3 * MB, "next.bin")).code() == DONE,
              "what was removed is room again")


def test_K11_a_quota_holds_for_names_and_for_what_has_no_size(onehop) -> None:
    with Served(onehop) as world:
        world.serve("--quota", "1MB")
        makes = {
            "files": lambda path: path.write_bytes(b"1"),
            "empty": lambda path: path.touch(),
            "folders": lambda path: path.mkdir(),
            "links": lambda path: path.symlink_to("nowhere"),
        }
        for name, make in makes.items():
            folder = world.work / name
            folder.mkdir()
            for i in range(1000):
                make(folder / str(i))
            refused = world.send_as("eve", folder, "--symlinks", "copy")
            check(refused.code() == REFUSED and "the quota is 1" in refused.text(),
                  f"a thousand {name}: {refused.text()}")
            for i in range(50, 1000):
                path = folder / str(i)
                path.rmdir() if name == "folders" else path.unlink()
            some = world.send_as("eve", folder, "--symlinks", "copy")
            check(some.code() == DONE, f"fifty {name}: {some.text()}")
        folder = world.work / "of-eve"
        before = sum(path.lstat().st_size for path in folder.rglob("*"))
        home = world.onehop
        world.onehop = "sh"
        try:
            stream = world.run_as("eve", "-c", 'head -c 100M /dev/zero | exec "$0" "$@"', home,
                                  "send", "-", "--name", "stream", "--to",
                                  f"bob@{world.address}", "--json")
        finally:
            world.onehop = home
        check(stream.code() == REFUSED and "the quota is 1" in stream.text(), stream.text())
        grown = sum(path.lstat().st_size for path in folder.rglob("*")) - before
        check(grown <= MB, f"{grown} bytes of a stream are there")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
