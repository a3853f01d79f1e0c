#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Datagrams of 64 KB in IP fragments across the lab's link: fragment_test.py ONEHOP [WORD].

Goal:   a file arrives whole in fragments, and over a path that loses frames it arrives whole
        without them.
Method: the real program; the kernels of the lab's hosts fragment and reassemble, and count both.
Bounds: a 64-KB datagram is 45 fragments; what is not data (PINGs, feedback) is never one. Nothing
        is judged by the clock.
"""

import sys
from typing import Any

from program import World, check, main

MB = 1_000_000
SAYS_SINGLE = "from here on each frame is a datagram of its own"


def counted(world, host) -> dict[Any, Any]:
    """The IP counters of one host, by name."""
    text = world.run_on(host, "cat", "/proc/net/snmp")
    names, values = [line.split()[1:] for line in text.splitlines() if line.startswith("Ip:")]
    return dict(zip(names, map(int, values)))


def test_a_file_arrives_in_fragments(onehop) -> None:
    with World(onehop) as world:
        path = world.file(40 * MB + 12_345)
        receiver = world.receive("auto")
        sender = world.send(path, "udp", "--fragment")
        check(sender.code() == 0 and receiver.code() == 0, f"{sender.text()} {receiver.text()}")
        world.check_same(path)
        end, there = sender.end(), receiver.end()
        check("--fragment is an experiment" in sender.text(), f"the sender warns: {sender.text()}")
        check(
            end["fragments"] == "on" and there["fragments"] == "on"
            and SAYS_SINGLE not in sender.text(), f"{end['fragments']}")
        check(there["io_used"] == "udp" and end["io_mode"] == "fragments",
              f"{there['io_used']} {end['io_mode']}")
        sent, heard = counted(world, "a"), counted(world, "b")
        datagrams = 40 * MB // 65_507
        check(sent["FragOKs"] >= datagrams,
              f"{datagrams} datagrams and more were cut, the kernel says {sent['FragOKs']}")
        check(sent["FragCreates"] >= 40 * MB // 1480, f"into fragments: {sent['FragCreates']}")
        check(heard["ReasmOKs"] >= datagrams, f"and put together there: {heard['ReasmOKs']}")


def test_loss_ends_fragments_and_the_file_is_whole(onehop) -> None:
    with World(onehop, "loss-1") as world:
        path = world.file(30 * MB)
        receiver = world.receive("udp")
        sender = world.send(path, "auto", "--fragment")
        check(sender.code() == 0 and receiver.code() == 0, f"{sender.text()} {receiver.text()}")
        world.check_same(path)
        check(sender.text().count(SAYS_SINGLE) == 1,
              f"the sender says once that fragments have ended: {sender.text()}")
        end = sender.end()
        check(end["fragments"] == "given_up" and end["io_used"] == "udp",
              f"{end['fragments']} over {end['io_used']}")
        sent = counted(world, "a")
        check(sent["FragOKs"] * 65_507 < 15 * MB,
              f"half of the file at most went in fragments: {sent['FragOKs']} datagrams")


def test_fragments_are_the_kernels_udp_alone(onehop) -> None:
    with World(onehop) as world:
        path = world.file(1 * MB)
        for io, *more in (("afxdp",), ("dpdk", "--eal=--vdev=net_null0")):
            sender = world.send(path, io, "--fragment", *more)
            check(sender.code() == 9 and "--io udp" in sender.text(),
                  f"--io {io} is refused: {sender.text()}")
        sender = world.send(path, "udp", "--fragment", "--frame-size", "1000")
        check(sender.code() == 2 and "--frame-size" in sender.text(),
              f"--frame-size is refused: {sender.text()}")
        receiver = world.receive("afxdp")
        sender = world.send(path, "udp", "--fragment")
        check(sender.code() == 5 and "--io udp" in sender.text(),
              f"a receiver on --io afxdp refuses: {sender.text()}")
        check(receiver.code() == 9, f"and says so: {receiver.process.returncode} {receiver.text()}")


if __name__ == "__main__":
    sys.exit(main(globals()))
