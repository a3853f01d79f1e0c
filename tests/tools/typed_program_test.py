#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What a first file costs two people: typed_program_test.py ONEHOP [WORD].

Goal:   few characters are typed, and data flows soon.
Method: two hosts on a bridge, a shell in a terminal on each, and every key that both persons press
        is counted. The first three letters of a word are enough. Then what passes on the link until
        the first full frame of data.
Bounds: the project's: 60 characters between fresh machines, 20 between paired ones where a service
        waits. Turns of the TCP connection until data flows (one end has spoken, and the other one
        speaks) hardly depend on the machine: 10 to 13 were counted, and 20 are allowed.
        Seconds are printed.
"""

import re
import socket
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))

from program import CODE, check, main  # noqa: E402
from pair_test import Devices  # noqa: E402
from prompt_program_test import Shell  # noqa: E402

FRESH_MAX, PAIRED_MAX = 60, 20
WORDS = r"^ *([a-z]{3,8})-([a-z]{3,8})-([a-z]{3,8})\r?$"
ETH_P_ALL, PROMPT = 3, "ready> "


class People(Devices):
    """Two persons at a and b."""

    def __init__(self, onehop) -> None:
        super().__init__(onehop, "46", "ab")
        self.typed = 0
        self.shells: list[Shell] = []

    def __exit__(self, *arguments) -> None:
        for shell in self.shells:
            shell.close()
        super().__exit__(*arguments)

    def shell(self, letter) -> Shell:
        programs, home = self.work / "bin", self.work / f"home-{letter}"
        home.mkdir()
        if not programs.exists():
            programs.mkdir()
            (programs / "onehop").symlink_to(Path(self.onehop).resolve())
        words = f'cd {home} && PATH={programs}:$PATH exec env ENV= PS1="{PROMPT}" sh -i'
        shell = Shell(self.on(letter, "env", f"ONEHOP_CONFIG_DIR={self.work / letter}", "sh", "-c",
                              words), {"ONEHOP_STATE_DIR": ""})
        self.shells.append(shell)
        shell.read_until(lambda: PROMPT in shell.text, "there is a prompt")
        return shell

    def type(self, shell, text) -> None:
        self.typed += len(text)
        shell.write(text)

    def send_note(self, shell, words="") -> None:
        """send_note has the person send the file `note`, and type these words."""
        seen = len(shell.text)
        self.type(shell, "onehop send note\n")
        if words:
            shell.read_until(lambda: "Code:" in shell.text[seen:], "it asks for the words")
            self.type(shell, words + "\n")
        shell.read_until(lambda: PROMPT in shell.text[seen:], "it has ended")


def test_few_characters_are_typed(onehop) -> None:
    with People(onehop) as people:
        b, a = people.shell("b"), people.shell("a")
        note = people.work / "home-a" / "note"
        note.write_text("a few words\n")
        people.type(b, "onehop recv\n")
        b.read_until(lambda: re.search(WORDS, b.text, re.M) and "listening" in b.text, "words")
        found: Any = re.search(WORDS, b.text, re.M)
        people.send_note(a, " ".join(word[:3] for word in found.groups()))
        arrived = people.work / "home-b" / "note"
        check(arrived.read_text() == note.read_text(), a.text)
        fresh = people.typed
        b.write("\x03")
        b.read_until(lambda: b.text.endswith(PROMPT), "it has ended")
        people.pair("a", "b")
        arrived.unlink()
        served = people.start("b", "recv", "--service", "--dir", arrived.parent, "--json")
        served.wait_for(lambda: served.events("start"), "it can accept")
        people.typed = 0
        people.send_note(a)
        check(arrived.read_text() == note.read_text(), a.text)
        print(f"      typed by both: {fresh} between fresh machines, {people.typed} between paired "
              "ones", flush=True)
        check(fresh <= FRESH_MAX, f"{fresh} characters between fresh machines")
        check(people.typed <= PAIRED_MAX, f"{people.typed} characters between paired ones")


def payload_of(frame) -> tuple[int, int]:
    """Protocol and bytes of payload of a unicast frame of IPv4 or IPv6; 0, 0: another one."""
    at, protocol, end = 14, 0, len(frame)
    if frame[0] & 1 == 0 and frame[12:14] == b"\x86\xdd":
        protocol, at, end = frame[20], 54, 54 + int.from_bytes(frame[18:20], "big")
    elif frame[0] & 1 == 0 and frame[12:14] == b"\x08\x00":
        protocol, at, end = frame[23], 34, 14 + int.from_bytes(frame[16:18], "big")
    if protocol == socket.IPPROTO_TCP:
        return protocol, end - at - 4 * (frame[at + 12] >> 4)
    return (protocol, end - at - 8) if protocol == socket.IPPROTO_UDP else (0, 0)


def turns_of(tap) -> int:
    """turns_of is how often the other end of the TCP connection spoke before data flowed."""
    tap.setblocking(False)
    turns, speaker, full = 0, b"", 1000
    while True:
        try:
            frame = tap.recv(70_000)
        except BlockingIOError:
            raise AssertionError("no data was seen") from None
        protocol, count = payload_of(frame)
        if protocol == socket.IPPROTO_UDP and count >= full:
            return turns
        if protocol == socket.IPPROTO_TCP and count > 0 and frame[6:12] != speaker:
            turns, speaker = turns + 1, frame[6:12]


def test_data_flows_soon(onehop) -> None:
    with People(onehop) as people:
        people.pair("a", "b")
        for name, code, turns_max in ("words typed", CODE, 20), ("paired", None, 20):
            receiver = (people.recv("b", "host-b") if code else people.receiver("b"))
            with people.socket("b", socket.AF_PACKET, socket.SOCK_RAW,
                               socket.htons(ETH_P_ALL)) as tap:
                tap.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
                tap.bind(("lan0", ETH_P_ALL))
                path, began = people.file(100_000), time.monotonic()
                sender = people.start("a", "send", path, "--io", "udp", "--json", code=code)
                check(sender.code() == 0, sender.text())
                seconds = time.monotonic() - began - sender.end()["seconds"]
                people.check_sent(sender, receiver)
                turns = turns_of(tap)
            print(f"      {name}: first data after {turns} turns, at most {seconds:.2f} s from the "
                  "start of send", flush=True)
            check(turns <= turns_max, f"{name}: {turns} turns")


if __name__ == "__main__":
    sys.exit(main(globals()))
