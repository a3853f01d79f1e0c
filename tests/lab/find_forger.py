# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Forged answers to who looks for receivers, from a namespace on the link: find_forger.py HOW.

flood: 10,000 a second for a while, each of another receiver, from 500 addresses: more would fill
       the kernel's table of neighbours, which all namespaces share.
name:  one, whose name would write to a terminal.
"""

import contextlib
import os
import socket
import struct
import sys
import time

GROUP, PORT, IP_PKTINFO = "239.255.74.11", 7411, 8
RATE, SPAN = 10_000, 2.0
INDEX = socket.if_nametoindex("lan0")


def answer(question, name, instance=bytes(8)) -> bytes:
    return (b"onehop-a\x01" + bytes([len(name)]) + struct.pack("!H", PORT) + question[9:25] +
            instance + bytes(16) + name)


def flood(asked, question, asker) -> None:
    """Whoever asks meanwhile is the next to be flooded."""
    burst, number = RATE // 100, 0
    started = due = time.monotonic()
    while time.monotonic() - started < SPAN:
        for number in range(number, number + burst):
            source = socket.inet_aton(f"10.5.{128 + number // 250 % 2}.{1 + number % 250}")
            info = struct.pack("i4s4s", INDEX, source, bytes(4))
            asked.sendmsg([answer(question, f"forged-{number}".encode(), os.urandom(8))],
                          [(socket.IPPROTO_IP, IP_PKTINFO, info)], 0, asker)
        due += burst / RATE
        time.sleep(max(0.0, due - time.monotonic()))
        with contextlib.suppress(BlockingIOError):
            question, asker = asked.recvfrom(2000, socket.MSG_DONTWAIT)
            started = time.monotonic()


def main() -> None:
    asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asked.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    asked.bind((GROUP, PORT))
    asked.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                     struct.pack("4s4si", socket.inet_aton(GROUP), bytes(4), INDEX))
    print("ready", flush=True)
    while True:
        question, asker = asked.recvfrom(2000)
        if sys.argv[1] == "flood":
            flood(asked, question, asker)
        else:
            asked.sendto(answer(question, b"\x1b]0;evil\x07" + "\u202e".encode()), asker)


main()
