#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What --priority background is worth over the kernel's pfifo_fast: priority_test.py ONEHOP [WORD].

Goal:   where the queue of a host is one FIFO for each priority (pfifo_fast, as phones have it), a
        transfer with --priority background leaves a TCP connection in the foreground what it
        offers, and takes the rest. Without it they share.
Method: two hosts, a link of 300 Mbit/s by TBF with pfifo_fast in it. A TCP connection that paces
        240 Mbit/s alone, beside a transfer in the background, beside a normal one, by turns; then
        the transfer goes on alone to its end. Over UDP, and over AF_XDP on a macvlan.
Bounds: of what it has alone the connection keeps 0.9 beside the background and at most 0.85 beside
        the normal one; of the link both together take 0.85. Ratios within one run.
"""

import socket
import statistics
import sys
import threading
import time
from typing import Any

from program import check, main
from spaces import Spaces

LINK, OFFERED = 300e6 / 8, 240e6 / 8
ROUNDS, ROUND_S, SETTLE_S = 2, 1.5, 0.7
SO_MAX_PACING_RATE = 47
KEPT_MIN, SHARED_MAX, USED_MIN = 0.9, 0.85, 0.85
PORT = 5001


class Link(Spaces):
    """Hosts a and b; a's device on the link is a macvlan over the veth that has the queue."""

    def __init__(self, onehop) -> None:
        super().__init__(onehop, "ab")

    def __enter__(self) -> Any:
        super().__enter__()
        self.join("a", "va", "b", "vb")
        self.run_on("a", *"tc qdisc add dev va root handle 1: tbf rate 300mbit burst 64k "
                    "limit 4m".split())
        self.run_on("a", *"tc qdisc add dev va parent 1: handle 2: pfifo_fast".split())
        self.ip("a", "link add link va name mv0 type macvlan mode bridge", "link set mv0 up",
                "addr add 10.112.0.1/24 dev mv0")
        self.ip("b", "addr add 10.112.0.2/24 dev vb")
        return self

    def received(self) -> int:
        return int(self.run_on("b", "cat", "/sys/class/net/vb/statistics/rx_bytes"))


class Foreground:
    """A TCP connection from a to b that offers its rate, and what of it arrives."""

    def __init__(self, link) -> None:
        self._link, self.received, self._is_over = link, 0, False
        listener = link.socket("b", socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("10.112.0.2", PORT))
        listener.listen(1)
        self._out = link.socket("a", socket.AF_INET, socket.SOCK_STREAM)
        self._out.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, int(OFFERED))
        self._out.connect(("10.112.0.2", PORT))
        self._in, _ = listener.accept()
        listener.close()
        self._threads = [threading.Thread(target=one) for one in (self._send, self._receive)]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        block = bytes(65536)
        while not self._is_over:
            self._out.sendall(block)
        self._out.close()

    def _receive(self) -> None:
        while count := len(self._in.recv(1 << 20)):
            self.received += count
        self._in.close()

    def rate(self, seconds) -> float:
        before, begun = self.received, time.monotonic()
        time.sleep(seconds)
        return (self.received - before) / (time.monotonic() - begun)

    def close(self) -> None:
        self._is_over = True
        for thread in self._threads:
            thread.join()


def measure(link, path, io, priority) -> tuple[float, float]:
    """What the connection has beside a transfer, and both together, in bytes a second."""
    receiver = link.receive("b", io=io)
    sender = link.send("a", path, "10.112.0.2", "--priority", priority, "--iface", "mv0", io=io)
    link.wait_bytes(sender, "b", "vb", link.received() + 2_000_000)
    foreground = Foreground(link)
    try:
        time.sleep(SETTLE_S)
        before, begun = link.received(), time.monotonic()
        has = foreground.rate(ROUND_S)
        all_ = (link.received() - before) / (time.monotonic() - begun)
    finally:
        foreground.close()
    link.check_arrived(sender, receiver, path)
    return has, all_


def alone(link) -> float:
    foreground = Foreground(link)
    time.sleep(SETTLE_S)
    rate = foreground.rate(ROUND_S)
    foreground.close()
    return rate


def judge(onehop, io) -> None:
    with Link(onehop) as link:
        path = link.file(int(LINK * 3))
        has: dict[str, list[float]] = {"alone": [], "background": [], "normal": []}
        used = []
        for _ in range(ROUNDS):
            has["alone"].append(alone(link))
            for priority in ("background", "normal"):
                rate, together = measure(link, path, io, priority)
                has[priority].append(rate)
                used.append(together / LINK)
        middle = {name: statistics.median(rates) for name, rates in has.items()}
        kept = {name: middle[name] / middle["alone"] for name in ("background", "normal")}
        print(f"      {io}: beside the background {kept['background']:.3f} of what it has alone, "
              f"beside a normal transfer {kept['normal']:.3f}; the link carries "
              f"{min(used):.3f} to {max(used):.3f}", flush=True)
        check(kept["background"] >= KEPT_MIN, f"{kept} {has}")
        check(kept["normal"] <= SHARED_MAX, f"{kept} {has}")
        check(statistics.median(used) >= USED_MIN, f"{used}")


def test_a_transfer_in_the_background_over_udp(onehop) -> None:
    judge(onehop, "udp")


def test_a_transfer_in_the_background_over_afxdp(onehop) -> None:
    judge(onehop, "afxdp")


if __name__ == "__main__":
    sys.exit(main(globals()))
