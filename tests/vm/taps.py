#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A cable between two cards of several queues: taps.py --queues N -- QEMU ARGUMENT...

    card 0, queue 0 ── fd 20 ── tap0q0 ─┐                ┌─ tap1q0 ── fd 30 ── card 1, queue 0
    card 0, queue 1 ── fd 21 ── tap0q1 ─┴─ by one byte ──┴─ tap1q1 ── fd 31 ── card 1, queue 1

It becomes QEMU. Each queue of a card is a tap device of its own. What one card sends is given to a
queue of the other by SPREAD_BYTE of the frame, which is random in our data: so each queue of a
receiver gets its part of one flow, as no hash over addresses and ports would do it. What is shorter
goes to queue 0.

The devices are in a user and a network namespace of their own, which needs no root; they are gone
with QEMU. Exit code 77: such a namespace cannot be made, or has no tap devices.
"""

import argparse
import fcntl
import os
import socket
import struct
import subprocess
import sys

CARDS = 2
FDS = (20, 30)  # of queue 0, by card; where tests/vm/vm tells QEMU to look
SPREAD_BYTE = 60  # after the Ethernet header: in the sealed part of a data frame
TUNSETIFF, IFF_TAP, IFF_MULTI_QUEUE, IFF_NO_PI, IFF_VNET_HDR = (
    0x400454CA, 0x2, 0x100, 0x1000, 0x4000)


def make_tap(name) -> int:
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF,
                struct.pack("16sH22x", name.encode(),
                            IFF_TAP | IFF_MULTI_QUEUE | IFF_NO_PI | IFF_VNET_HDR))
    return fd


def tc(*words) -> None:
    subprocess.run(["tc", *map(str, words)], check=True)


def make_taps(queues) -> list[int]:
    """make_taps makes all devices and what goes between them; in the namespace of their own."""
    fds = [make_tap(f"tap{card}q{queue}") for card in range(CARDS) for queue in range(queues)]
    for card in range(CARDS):
        for queue in range(queues):
            name = f"tap{card}q{queue}"
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
            tc("qdisc", "add", "dev", name, "ingress")
    for card in range(CARDS):
        for queue in range(queues):
            for target in (*range(1, queues), 0):
                match = (target, queues - 1) if target else (0, 0)
                tc("filter", "add", "dev", f"tap{card}q{queue}", "parent", "ffff:", "protocol",
                   "all", "prio", target or queues, "u32", "match", "u8", *match, "at",
                   SPREAD_BYTE if target else 0, "action", "mirred", "egress", "redirect", "dev",
                   f"tap{1 - card}q{target}")
    return fds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--queues", type=int, required=True, help="a power of two")
    parser.add_argument("--give-to", type=int, help="the descriptor that gets the devices")
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    if options.give_to is not None:
        with socket.socket(fileno=options.give_to) as parent:
            socket.send_fds(parent, [b"."], make_taps(options.queues))
        return
    ours, theirs = socket.socketpair()
    made = subprocess.run(["unshare", "-Urn", sys.executable, __file__, "--queues",
                           str(options.queues), "--give-to", str(theirs.fileno())],
                          pass_fds=[theirs.fileno()], check=False)
    if made.returncode != 0:
        sys.exit(77)
    _, fds, _, _ = socket.recv_fds(ours, 1, CARDS * options.queues)
    for number, fd in enumerate(fds):
        os.dup2(fd, FDS[number // options.queues] + number % options.queues)
    os.execvp(options.command[0], options.command)


if __name__ == "__main__":
    main()
