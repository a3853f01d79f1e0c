#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""A link that goes and comes back in the middle of a transfer: outages_trial.py ONEHOP [WORD].

Goal:   the full rate is back half a second after the return of the sender's interface, under every
        law and over both ports, and no
        byte is lost.
Method: one transfer for each law and port over a link of 100 Mbit/s. Its sending interface goes
        down for a random time of 0.1 to 1.5 s,
        once; in the long form for 0.1 to 5 s, as often as there are rounds. A sampler beside the
        receiver notes what its interface has got. The goodput from 0.5 to 1.5 s after the return is
        compared with that of the second before the outage, in the same run. What is left of the
        file then goes without the shaper.
Bounds: 95 % of it. The file that arrives is compared by digest. A second in which the sampler,
        which only sleeps and reads, came late itself by
        25 ms and more is not judged when it falls short, and told: the machine stood still. Nine of
        ten must be judged. In the short form, which runs beside others, a law that falls short is
        played again, at most twice: what the program remembers shows each time.
"""

import bisect
import os
import subprocess
import sys
import time
from typing import Any

from trial import dice, rounds

from program import World, check, main

MB = 1_000_000
RATE_MBIT = 100
LATE_S = 0.025  # two and a half of the sampler's periods; half of what the bound allows to be lost
BYTES_PER_SECOND = RATE_MBIT * 125_000
LAWS = {
    "auto": ["--law", "auto"], "safe-range": ["--law", "safe-range"], "wdtcp": ["--law", "wdtcp"],
    "cupid": ["--law", "cupid"], "qcut": ["--law", "auto",
                                          "--qcut"], "fixed": ["--law", "fixed:90Mbit"]
}
SAMPLER = """
import time
with open("/sys/class/net/vb/statistics/rx_bytes") as counter:
    while True:
        counter.seek(0)
        print(time.monotonic(), counter.read().strip(), flush=True)
        time.sleep(0.01)
"""


class Sampler:
    """What b's interface has received, with times. Into a file: a pipe would be full after half a
    minute."""

    def __init__(self, world) -> None:
        self._path = world.work / "samples"
        with open(self._path, "wb") as out:
            self._process = subprocess.Popen(world.on("b", sys.executable, "-c", SAMPLER),
                                             stdout=out)
        self._times, self._counts = [], []

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_) -> None:
        self._process.kill()
        self._process.wait()

    def read(self) -> None:
        for line in self._path.read_text().splitlines():
            if line.count(" ") == 1:
                at, count = line.split()
                self._times.append(float(at))
                self._counts.append(int(count))

    def _between(self, begin, end) -> Any:
        return (min(bisect.bisect_left(self._times, moment),
                    len(self._times) - 1) for moment in (begin, end))

    def rate(self, begin, end) -> Any:
        """rate is the bytes per second between two moments, each taken at the first sample from
        then on."""
        i, j = self._between(begin, end)
        span = self._times[j] - self._times[i]
        check(span > 0.5 * (end - begin),
              f"the sampler was not held up: {span} s between its samples for {end - begin} s")
        return (self._counts[j] - self._counts[i]) / span

    def longest_gap(self, begin, end) -> Any:
        """longest_gap is how long the sampler itself was away at most between the samples that
        rate() takes, in seconds."""
        i, j = self._between(begin, end)
        return max(after - before
                   for before, after in zip(self._times[i:j], self._times[i + 1:j + 1]))


def outage(world, span) -> tuple[Any, Any]:
    """outage takes a's interface down for `span` seconds and returns when it began and ended."""
    # what starting a command takes is not in the span
    world.run_on("a", "sh", "-c", "echo up >/dev/null")
    began = time.monotonic()
    world.run_on("a", "sh", "-c", f"ip link set va down; sleep {span:.3f}; ip link set va up")
    return began, time.monotonic()


def play(onehop, law, io, spans) -> list[Any]:
    with World(onehop, f'rate = "{RATE_MBIT}Mbit"\n') as world, Sampler(world) as sampler:
        # 3 s of it for each outage
        path = world.file(int(BYTES_PER_SECOND * (4 + 3.2 * len(spans))))
        receiver = world.receive(io)
        sender = world.send(path, io, *LAWS[law])
        world.wait_bytes(BYTES_PER_SECOND // 10, receiver)
        away = []
        for span in spans:
            time.sleep(1.2)
            away.append(outage(world, span))
            time.sleep(max(0.0, away[-1][1] + 1.6 - time.monotonic()))
            check(
                sender.process.poll() is None,
                f"the transfer outlasts the trial: it ended with {sender.process.poll()}: "
                f"{sender.text()}"
            )
        world.run_on("a", "tc", "qdisc", "del", "dev", "va", "root")
        check(sender.code() == 0,
              f"send ends with 0, not {sender.process.returncode}: {sender.text()}")
        check(receiver.code() == 0,
              f"recv ends with 0, not {receiver.process.returncode}: {receiver.text()}")
        world.check_same(path)
        sampler.read()
        ratios = [
            sampler.rate(ended + 0.5, ended + 1.5) / sampler.rate(began - 1.0, began)
            for began, ended in away
        ]
        gaps = [sampler.longest_gap(ended + 0.5, ended + 1.5) for _, ended in away]
    shown = ", ".join(f"{span:.2f} s: {ratio:.3f}" for span, ratio in zip(spans, ratios))
    print(f"      {law} over {io}: {shown}", flush=True)
    short = [(f"{law} over {io}: {ratio:.3f} of the rate after {span:.2f} s", gap)
             for span, ratio, gap in zip(spans, ratios, gaps) if ratio < 0.95]
    unjudged = [
        f"{text}: not judged, the machine stood still for {gap * 1000:.0f} ms"
        for text, gap in short if gap >= LATE_S
    ]
    for text in unjudged:
        print(f"      {text}", flush=True)
    check(
        len(unjudged) <= max(1,
                             len(spans) // 10), f"nine of ten outages can be judged: {unjudged}")
    return [text for text, gap in short if gap < LATE_S]


def trial(onehop, io) -> None:
    random, count = dice(f"outages over {io}"), rounds(1)
    is_short = count == 1
    slow = []
    for law in LAWS:
        for _again in range(3 if is_short else 1):
            missed = play(onehop, law, io,
                          [random.uniform(0.1, 1.5 if is_short else 5.0) for _ in range(count)])
            if not missed:
                break
        slow += missed
    check(not slow, f"95 % of the rate from half a second after the return: {'; '.join(slow)}")


def test_the_rate_is_back_after_an_outage_over_udp(onehop) -> None:
    trial(onehop, "udp")


def test_the_rate_is_back_after_an_outage_over_afxdp(onehop) -> None:
    trial(onehop, "afxdp")


if __name__ == "__main__":
    sys.exit(main(globals()))
