#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Paired devices that find each other: pair_test.py ONEHOP [WORD].

Goal:   `pair` finds who pairs; then `send PATH` takes the paired device that answers, at once and
        with nothing typed, and is led astray by nobody who answers under its name. A stranger who
        asks cannot tell one run of a device from another one's.
Method: namespaces on a bridge, each host with a folder of devices of its own.
Bounds: exact, but for the time from the start of `send` to its connection, which is printed: it is
        less than the look for strangers takes (0.4 s) where the machine is not busy.
"""

import os
import socket
import struct
import sys
import time
from pathlib import Path

from find_test import GROUP, PORT, Room, found
from program import CODE, End, check, main

DONE, USAGE, AUTH = 0, 2, 4
TAG = b"onehop-q\x01"


class Devices(Room):
    def start(self, letter, *command, code=None) -> End:
        """start runs a command on that host, with a code where one is given."""
        words = ["env", *([] if code else ["-u", "ONEHOP_CODE"]),
                 f"ONEHOP_CONFIG_DIR={self.work / letter}", self.onehop, *command]
        end = End(self.on(letter, *words), self.work, f"device{len(self._ends)}", code or "")
        self._ends.append(end)
        return end

    def pair(self, one, other) -> None:
        shows = self.start(other, "pair", "--name", f"host-{other}", "--json", code=CODE)
        shows.wait_for(lambda: shows.events("start"), "it waits")
        asks = self.start(one, "pair", "--name", f"host-{one}", "--json", code=CODE)
        check(asks.code() == DONE and shows.code() == DONE, f"{asks.text()} {shows.text()}")
        check(asks.events("paired")[0]["device"] == f"host-{other}", "by its name")
        done = self.start(other, "peers", "set", f"host-{one}", "--rule", "accept")
        check(done.code() == DONE, done.text())

    def receiver(self, letter, name=None, *options) -> End:
        target = self.work / f"in-{letter}-{len(self._ends)}"
        target.mkdir()
        end = self.start(letter, "recv", "--once", "--io", "udp", "--dir", target, "--name",
                         name or f"host-{letter}", "--json", *options)
        self.targets[end] = target
        end.wait_for(lambda: end.events("start"), "recv can accept")
        return end

    def sender(self, *options, letter="a") -> End:
        return self.start(letter, "send", self.file(100_000), "--io", "udp", "--json", *options)


def test_a_paired_device_is_taken_at_once(onehop) -> None:
    with Devices(onehop) as room:
        room.pair("a", "b")
        room.recv("c", "stranger")
        receiver = room.receiver("b")
        began = time.monotonic()
        sender = room.sender()
        sender.wait_for(lambda: sender.events("start"), "it has found it")
        took = time.monotonic() - began
        room.check_sent(sender, receiver)
        print(f"from the start of send to its connection: {took:.3f} s")
        devices = {one["name"]: one["device"] for one in found(sender)["receivers"]}
        check(devices["host-b"] == "host-b" and devices.get("stranger") is None, f"{devices}")
        receiver = room.receiver("b", "another name")
        room.check_sent(room.sender("--to", "host-b"), receiver)


def test_several_paired_devices_are_a_choice(onehop) -> None:
    with Devices(onehop) as room:
        room.pair("a", "b")
        room.pair("a", "c")
        one, other = room.receiver("b"), room.receiver("c")
        sender = room.sender()
        check(sender.code() == USAGE and "paired as host-c" in sender.text(), f"{sender.text()}")
        room.check_sent(room.sender("--to", "host-c"), other)
        room.check_sent(room.sender(), one)


def test_K7_who_answers_under_a_device_s_name_is_not_taken_for_it(onehop) -> None:
    with Devices(onehop) as room:
        room.pair("a", "b")
        room.recv("c", "host-b")
        for options in (("--to", "host-b", "--wait", "0"),):
            sender = room.sender(*options)
            check(sender.code() == AUTH and "peers forget host-b" in sender.text(),
                  f"{sender.text()}")
        receiver = room.receiver("b")
        room.check_sent(room.sender("--to", "host-b"), receiver)


def answer_to(room, nonce) -> bytes:
    """answer_to is the peer_hash in the answer to one question from host a."""
    with room.socket("a", socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.setsockopt(socket.SOL_SOCKET, 25, b"lan0")  # SO_BINDTODEVICE
        asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF,
                          struct.pack("4s4si", bytes(4), bytes(4), int(
                              room.run_on("a", "cat", "/sys/class/net/lan0/ifindex"))))
        asking.settimeout(10)
        asking.sendto(TAG + nonce + bytes(231), (GROUP, PORT))
        said = asking.recv(2000)
        check(said[12:28] == nonce, "it answers that question")
        return said[36:52]


def test_K7_a_stranger_does_not_know_a_device_again(onehop) -> None:
    with Devices(onehop, "4", "ab") as room:
        room.pair("a", "b")
        nonce = os.urandom(16)
        hashes = []
        for _ in range(2):
            receiver = room.receiver("b")
            hashes += [answer_to(room, nonce), answer_to(room, os.urandom(16))]
            receiver.process.terminate()
            receiver.code()
        check(len(set(hashes)) == 4, f"all of them differ: {hashes}")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    sys.exit(main(globals()))
