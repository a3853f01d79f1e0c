# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Keeps the runs of a round comparable on a virtual machine, whose CPUs the host moves.

The time of a cache line between the first two CPUs and back tells where they are, and CPU per byte
of every program changes with it, of each by another factor: "Where the CPUs were" in the page
`wired` of docs/results.
"""

import json
import subprocess
import time
from typing import Any

from measure import MeasureError

NAME_START = "CPUs "        # of the point of `onehop bench ring`
SAME_FACTOR = 2.0           # on one place the figure scatters by a third
PATIENCE_SECONDS = 30       # for the host to move the CPUs back
TRIES = 4                   # of a round, each at the place where it begins
PAUSE_SECONDS = 0.2


class Moved(MeasureError):
    pass


def round_trip_ns(onehop) -> Any:
    """round_trip_ns measures it, or returns None where there is one CPU."""
    done = subprocess.run([onehop, "bench", "ring", "-t", "0.01", "-r", "1", "--json"],
                          capture_output=True, text=True, check=True)
    for line in map(json.loads, done.stdout.splitlines()):
        if line["type"] == "result" and line["name"].startswith(NAME_START):
            return line["metrics"]["ns_per_message"]["median"]
    return None


class Place:
    """Where the CPUs were when a round began. run() repeats a measurement until they were there
    before and after it."""

    def __init__(self, onehop) -> None:
        self._onehop = onehop
        self.round_trip_ns = round_trip_ns(onehop)

    def _is_here(self) -> bool:
        now = round_trip_ns(self._onehop)
        return now is None or max(now,
                                  self.round_trip_ns) <= SAME_FACTOR * min(now, self.round_trip_ns)

    def run(self, measure) -> Any:
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < give_up_at:
            if not self._is_here():
                time.sleep(PAUSE_SECONDS)
                continue
            outcome = measure()
            if self._is_here():
                return outcome
        raise Moved(
            f"the host moved the CPUs (a line's round trip was {self.round_trip_ns:.0f} ns) and "
            f"not back for {PATIENCE_SECONDS} s"
        )


def hold(onehop, measure_round) -> Any:
    """hold calls measure_round(place), again at another place when the CPUs leave this one for
    good."""
    for left in range(TRIES - 1, -1, -1):
        try:
            return measure_round(Place(onehop))
        except Moved:
            if left == 0:
                raise
