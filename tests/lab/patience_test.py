#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A peer that is gone for a minute and comes back: patience_test.py ONEHOP [WORD].

Goal:   the transfer goes on by itself, and nothing is sent twice but what was in flight.
Method: two namespaces with a bridge between them, paired devices, `recv --service` at one end. The
        receiver's interface goes down; the receiver is stopped (SIGSTOP, as a suspend); its address
        changes while its link is down, and the sender finds it again.
Bounds: it goes on within 2 s of the return, as the project has it. What arrives in all is at most
        the file and what was under way: the blocks that were not whole, and what the sender's
        window holds (64 MiB at the highest rate here).
"""

import os
import signal
import sys
import time
from typing import Any

from program import End, check, main
from spaces import Spaces

A, B, ELSEWHERE = "10.5.0.1", "10.5.0.2", "10.5.0.77"
GONE_S, BACK_S, MB = 60, 2, 1_000_000
IN_FLIGHT = 64 << 20


class Apart(Spaces):
    """ann at a sends to bob at b, who serves; m is between them."""

    def __init__(self, onehop) -> None:
        super().__init__(onehop, "abm")

    def __enter__(self) -> Any:
        super().__enter__()
        try:
            self.join("m", "to_a", "a", "lan0")
            self.join("m", "to_b", "b", "lan0")
            self.ip("m", "link add name br0 type bridge", "link set dev to_a master br0",
                    "link set dev to_b master br0", "link set dev br0 up")
            self.ip("a", f"addr add {A}/24 dev lan0")
            self.ip("b", f"addr add {B}/24 dev lan0")
            self.run_on("a", "ping", "-c", "1", "-W", "5", B)
            self.pair()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self, letter, *words) -> End:
        device = "ann" if letter == "a" else "bob"
        end = End(self.on(letter, "env", f"ONEHOP_CONFIG_DIR={self.work / device}",
                          "ONEHOP_STATE_DIR=", *words), self.work, f"end{len(self._ends)}",
                  self.code)
        self._ends.append(end)
        return end

    code = "a-code-of-this-test-0123456789"

    def pair(self) -> None:
        shows = self.start("b", self.onehop, "pair", "--listen", B, "--name", "bob", "--json")
        shows.wait_for(lambda: shows.events("start"), "it waits")
        asks = self.start("a", self.onehop, "pair", B, "--name", "ann", "--json")
        for end in (asks, shows):
            check(end.code() == 0, end.text())
        done = self.start("b", self.onehop, "peers", "set", "ann", "--rule", "accept")
        check(done.code() == 0, done.text())

    def serve(self) -> End:
        end = self.start("b", "env", "-u", "ONEHOP_CODE", self.onehop, "recv", "--service", "--io",
                         "udp", "--name", "bob", "--dir", self.target, "--json")
        end.wait_for(lambda: end.events("start"), "it can accept")
        return end

    def send_patiently(self, path, to) -> End:
        return self.start("a", "env", "-u", "ONEHOP_CODE", self.onehop, "send", path, "--to", to,
                          "--io", "udp", "--max-rate", "100Mbit", "--patience", "5min", "--json")


def bytes_of(event) -> int:
    return int(event["bytes_total"])


def play(onehop, to, leave, come_back) -> None:
    with Apart(onehop) as spaces:
        path = spaces.file(150 * MB)
        service = spaces.serve()
        sender = spaces.send_patiently(path, to)
        service.wait_for(lambda: any(bytes_of(event) > 20 * MB
                                     for event in service.events("interval")), "it flows")
        leave(spaces, service)
        time.sleep(GONE_S)
        check(sender.process.poll() is None, f"it waits: {sender.text()}")
        before = len(sender.events("interval"))
        come_back(spaces, service)
        back_at = time.monotonic()
        sender.wait_for(lambda: "transferring" in {
            event["phase"] for event in sender.events("interval")[before:]}, "it goes on")
        # An interval event comes a second after the first data.
        went_on = time.monotonic() - back_at - 1
        print(f"    on again {went_on:.1f} s after its return")
        check(sender.code() == 0, sender.text())
        check((spaces.target / path.name).read_bytes() == path.read_bytes(), "it is there")
        check(went_on <= BACK_S, f"it went on {went_on:.1f} s after its return")
        end = sender.end()
        sent = end["bytes_total"] - end["bytes_skipped_total"]
        first = max(bytes_of(event) for event in service.events("interval")
                    if event["session"] == 1)
        check(sent + first <= path.stat().st_size + IN_FLIGHT, f"{first} and then {sent} bytes")


def test_U2_an_interface_that_is_down(onehop) -> None:
    play(onehop, f"bob@{B}", lambda spaces, _: spaces.ip("b", "link set lan0 down"),
         lambda spaces, _: spaces.ip("b", "link set lan0 up"))


def test_U2_a_receiver_that_sleeps(onehop) -> None:
    play(onehop, f"bob@{B}", lambda _, service: os.kill(service.process.pid, signal.SIGSTOP),
         lambda _, service: os.kill(service.process.pid, signal.SIGCONT))


def test_U2_another_address(onehop) -> None:

    def move(spaces, _) -> None:
        spaces.ip("b", f"addr del {B}/24 dev lan0", f"addr add {ELSEWHERE}/24 dev lan0",
                  "link set lan0 up")

    play(onehop, "bob", lambda spaces, _: spaces.ip("b", "link set lan0 down"), move)


if __name__ == "__main__":
    sys.exit(main(globals()))
