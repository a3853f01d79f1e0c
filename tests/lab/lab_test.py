#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The lab itself: lab_test.py LAB_PROGRAM. Needs root; exits 77 with the reason otherwise.

Goal:   a lab is what its profile says, refuses a second one, and leaves nothing behind however it
        ends.
Method: run the program as a user does, count what passes through, look at the namespaces
        afterwards.
Bounds: of 10,000 frames at 10 % loss the count has a standard deviation of 30; 8 to 12 % is more
        than 6 of them.
        Rates are judged by what the shaper let through in a time that is measured, with 5 % for its
        burst and clock.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any

from lab_world import (
    ETH_P_ALL, FRAMES, NAME, PORT, UDP_SEGMENT, Up, check, frames_through, is_gone, lab, main, on,
    profile_file, run, socket_on)


def test_loss_of_ten_percent_drops_8_to_12_percent_of_the_frames() -> None:
    with Up("loss-10"):
        for sender, receiver, family, address in (("a", "b", socket.AF_INET, "10.111.0.2"),
                                                  ("a", "b", socket.AF_INET6, "fd00:111::2"),
                                                  ("b", "a", socket.AF_INET, "10.111.0.1")):
            passed = frames_through(sender, receiver, family, address)
            check(0.88 * FRAMES <= passed <= 0.92 * FRAMES,
                  f"{sender} to {address}: {passed} of {FRAMES} frames passed")


def test_a_lab_without_loss_loses_nothing() -> None:
    with Up("steady-600"):
        passed = frames_through("a", "b", socket.AF_INET, "10.111.0.2")
        check(passed == FRAMES, f"{passed} of {FRAMES} frames passed")


def test_the_middle_is_a_piece_of_wire() -> None:
    """Whoever sent it, to whomever: a frame goes through as it came. A bridge that learned would,
    after b's own address came from a's side, send what is for b back to a."""
    with Up("steady-600"):
        address_b = bytes.fromhex(
            on("b", "cat", "/sys/class/net/vb/address").stdout.strip().replace(":", ""))
        sender, tap = (socket_on(host, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
                       for host in ("a", "b"))
        sender.bind(("va", ETH_P_ALL))
        tap.bind(("vb", ETH_P_ALL))
        tap.settimeout(5)
        stranger, nobody, group = bytes.fromhex("020000000001"), bytes.fromhex(
            "020000000002"), bytes.fromhex("333300000123")
        with tap, sender:
            for target, source in ((nobody, stranger), (group, stranger), (b"\xff" * 6, stranger),
                                   (nobody, address_b), (address_b, stranger)):
                frame = target + source + b"\x88\xb6" + os.urandom(1486)
                sender.send(frame)
                while (got := tap.recv(70_000))[12:14] != frame[12:14]:
                    pass
                check(got == frame,
                      f"to {target.hex()} from {source.hex()}: the frame came as it was sent")
        check(
            on("a", "ping", "-c", "1", "-W", "2", "10.111.0.2").returncode == 0,
            "the hosts still reach each other")


def test_frames_on_the_wire_have_mtu_size_and_whole_checksums() -> None:
    """What a sender hands down as one 10-KB super-packet must reach b as frames, for an AF_XDP
    socket sees them as they are."""
    with Up("steady-600"):
        tap = socket_on("b", socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        tap.bind(("vb", ETH_P_ALL))
        tap.settimeout(2)
        sender = socket_on("a", socket.AF_INET, socket.SOCK_DGRAM)
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1400)
        with tap, sender:
            sender.sendto(b"\x5a" * 9800, ("10.111.0.2", PORT))
            frames: list[bytes] = []
            while len(frames) < 7:
                frame = tap.recv(70_000)
                if frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_UDP and frame[
                        26:30] == bytes((10, 111, 0, 1)):
                    frames.append(frame)
        check(all(len(frame) == 14 + 20 + 8 + 1400 for frame in frames),
              f"sizes {[len(frame) for frame in frames]}")
        for frame in frames:
            pseudo = frame[26:34] + bytes(
                (0, socket.IPPROTO_UDP)) + (len(frame) - 34).to_bytes(2, "big")
            check(internet_checksum(pseudo + frame[34:]) == 0, "the UDP checksum is whole")


def internet_checksum(data) -> Any:
    total = sum(
        int.from_bytes(data[i:i + 2].ljust(2, b"\0"), "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def test_b_learns_the_address_of_the_macvlan_and_of_nothing_else() -> None:
    """An answer by va, the device below, would lead b's frames past an XDP program on mv0."""
    with Up("steady-600"):
        for _ in range(5):
            for command in (("a", "ip", "neigh", "flush", "all"),
                            ("b", "ip", "neigh", "flush", "all"), ("b", "ping", "-c", "1", "-W",
                                                                   "2", "10.111.0.1")):
                check(on(*command).returncode == 0, command)
            time.sleep(0.05)
            macvlan = on("a", "cat", "/sys/class/net/mv0/address").stdout.strip()
            check(macvlan in on("b", "ip", "neigh", "show", "10.111.0.1").stdout,
                  "b knows mv0's address")
            check("dev va" not in on("a", "ip", "neigh").stdout, "va takes no part")


FLOOD = r"""
import os, socket, subprocess, sys, time
def counter():
    return int(subprocess.run(["ip", "netns", "exec", sys.argv[1] + "-b", "cat",
                               "/sys/class/net/vb/statistics/rx_bytes"],
                              capture_output=True, check=True).stdout)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
sender.setsockopt(socket.IPPROTO_UDP, 103, 1400)
sender.connect((os.environ["ONEHOP_LAB_B4"], 7000))
def flood(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            sender.send(bytes(44 * 1400))
        except OSError:
            pass
flood(0.3)  # the bucket is full at first
begin_at, begin = time.monotonic(), counter()
flood(float(sys.argv[2]))
end_at, end = time.monotonic(), counter()
print((end - begin) * 8 / (end_at - begin_at) / 1e6)
"""


def flooded_mbit(profile, seconds) -> float:
    done = run(profile, sys.executable, "-c", FLOOD, NAME, str(seconds), on="a")
    check(done.returncode == 0, done.stderr)
    check(is_gone(), "lab run leaves nothing")
    return float(done.stdout)


def test_the_shaper_carries_its_rate() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rate = flooded_mbit(
            profile_file(folder, 'rate = "50Mbit"\nqueue = "200KB"\nburst = "20KB"\n'), 2)
    check(0.95 * 50 <= rate <= 1.05 * 50, f"a shaper of 50 Mbit/s carried {rate:.1f}")


def test_a_trace_carries_the_mean_of_its_rates() -> None:
    """100 changes in 2 s turned a TBF of 50 Mbit/s into 137: the trace must not give a bucket away
    at each change."""
    with tempfile.TemporaryDirectory() as folder:
        text = (
            'trace_period = 0.1\nqueue = "200KB"\nburst = "64KB"\n[[trace]]\nat = 0\nrate = '
            '"20Mbit"\n[[trace]]\nat = 0.05\nrate = "60Mbit"\n'
        )
        rate = flooded_mbit(profile_file(folder, text), 4)
    check(0.9 * 40 <= rate <= 1.1 * 40, f"a trace of 40 Mbit/s on average carried {rate:.1f}")


def test_a_blackout_ends_when_the_trace_says_so() -> None:
    """An HTB class stays silent for 1.4 s after 200 ms at 8 kbit/s; with it, this trace carries a
    quarter of what it should."""
    with tempfile.TemporaryDirectory() as folder:
        text = (
            'trace_period = 1\nqueue = "200KB"\nburst = "16KB"\n[[trace]]\nat = 0\nrate = '
            '"50Mbit"\n[[trace]]\nat = 0.2\nrate = "8kbit"\n[[trace]]\nat = 0.4\nrate = "50Mbit"\n'
        )
        rate = flooded_mbit(profile_file(folder, text), 4)
    check(0.9 * 40 <= rate <= 1.1 * 40, f"a trace of 40 Mbit/s on average carried {rate:.1f}")


if __name__ == "__main__":
    sys.exit(main(globals()))
