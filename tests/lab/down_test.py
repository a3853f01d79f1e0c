#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A link that is down in the moment when the data path opens: down_test.py ONEHOP [WORD].

Goal:   it is ridden out, as one that falls later is.
Method: two namespaces with a bridge between them. No route but that of TCP is there while an end
        opens its port; and the link falls while frames of full size are proven, which a rule of the
        bridge holds up until then: at the one end, at the other, or where neither sees it.
Bounds: none on time but that everything ends by itself.
"""

import sys
import time

from program import End, check, main
from spaces import Spaces

UNREACHABLE = 3
A, B = "10.5.0.1", "10.5.0.2"
OUTAGE_S = 6  # three times as long as a path that answers nothing is tried


def join_all(spaces) -> None:
    spaces.join("m", "to_a", "a", "lan0")
    spaces.join("m", "to_b", "b", "lan0")
    spaces.ip("m", "link add name br0 type bridge", "link set dev to_a master br0",
              "link set dev to_b master br0", "link set dev br0 up")
    spaces.ip("a", f"addr add {A}/24 dev lan0")
    spaces.ip("b", f"addr add {B}/24 dev lan0")
    spaces.run_on("a", "ping", "-c", "1", "-W", "5", B)


def nft(spaces, letter, *lines) -> str:
    return "".join(spaces.run_on(letter, "nft", *line.split()) for line in lines)


def hold_frames(spaces) -> None:
    nft(spaces, "m", "add table bridge f",
        "add chain bridge f c { type filter hook forward priority 0 ; }",
        "add rule bridge f c ip protocol udp counter drop")


def held_frames(spaces) -> int:
    words = nft(spaces, "m", "list table bridge f").split()
    return int(words[words.index("packets") + 1])


def receive(spaces, io) -> End:
    return spaces.receive("b", *(("--listen", B) if io == "afxdp" else ()), io=io)


def test_N10_no_route_when_an_end_opens_its_port(onehop) -> None:
    for letter in "ab":
        with Spaces(onehop, "abm") as spaces:
            join_all(spaces)
            path = spaces.file(2_000_000)
            receiver = receive(spaces, "udp")
            spaces.ip(letter, "route add 10.5.0.0/24 dev lan0 table 100",
                      "rule add priority 10 ipproto tcp table 100",
                      "rule add priority 20 unreachable")
            sender = spaces.send("a", path, B)
            time.sleep(3)
            for end in (sender, receiver):
                check(end.process.poll() is None, f"it waits for the route: {end.text()}")
            spaces.ip(letter, "rule del priority 20")
            spaces.check_arrived(sender, receiver, path)


def play(onehop, io, fall, rise) -> None:
    with Spaces(onehop, "abm") as spaces:
        join_all(spaces)
        hold_frames(spaces)
        path = spaces.file(2_000_000)
        receiver = receive(spaces, io)
        sender = spaces.send("a", path, B, io=io)
        sender.wait_for(lambda: held_frames(spaces) > 0, "the path is being proven")
        spaces.ip(*fall)
        nft(spaces, "m", "delete table bridge f")
        time.sleep(OUTAGE_S)
        spaces.ip(*rise)
        spaces.check_arrived(sender, receiver, path)


def test_N10_the_interface_of_the_sender_falls_while_the_path_is_proven(onehop) -> None:
    for io in ("udp", "afxdp"):
        play(onehop, io, ("a", "link set lan0 down"), ("a", "link set lan0 up"))


def test_N10_the_interface_of_the_receiver_falls_while_the_path_is_proven(onehop) -> None:
    for io in ("udp", "afxdp"):
        play(onehop, io, ("b", "link set lan0 down"), ("b", "link set lan0 up"))


def test_N10_the_carrier_of_the_sender_falls_while_the_path_is_proven(onehop) -> None:
    play(onehop, "udp", ("m", "link set dev to_a down"), ("m", "link set dev to_a up"))


def test_N10_a_link_falls_that_neither_end_sees(onehop) -> None:
    play(onehop, "udp", ("m", "link set dev br0 down"), ("m", "link set dev br0 up"))


def test_a_path_that_loses_every_frame_is_3_soon(onehop) -> None:
    """The control connection is alive, so it is no link that is down."""
    with Spaces(onehop, "abm") as spaces:
        join_all(spaces)
        hold_frames(spaces)
        receiver = receive(spaces, "udp")
        began = time.monotonic()
        sender = spaces.send("a", spaces.file(1000), B)
        for end in (sender, receiver):
            check(end.code() == UNREACHABLE, f"3, not {end.process.returncode}: {end.text()}")
            check("firewall" in end.text(), f"it names a firewall: {end.text()}")
        # Two rounds of 2 s; on a busy machine several times as long, and 30 s of silence are none.
        check(time.monotonic() - began < 25, f"after {time.monotonic() - began} s")


if __name__ == "__main__":
    sys.exit(main(globals()))
