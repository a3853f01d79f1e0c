#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""`onehop stress rings --lab`: lab_test.py ONEHOP. Root.

Goal:   each schedule's transfer arrives whole over both ports, each fault is reported, and nothing
        of the lab stays.
Method: three schedules.
Bounds: each schedule is full again in time (the command's own verdict) at least once in four runs,
        for a busy machine can spoil one of them (verdict.py).
"""

from typing import Any
import glob
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))
from program import PATIENCE, Skip, check, main  # noqa: E402  (found beside the lab's tests)
from verdict import check_in_time  # noqa: E402

INTERRUPTED, NO_IO = 128 + signal.SIGINT, 9


def left() -> set[Any]:
    """What runs of the command have made: namespaces and folders."""
    listed = subprocess.run(
        ["ip", "netns", "list"], capture_output=True, text=True, check=True
    ).stdout
    return {line for line in listed.splitlines() if line.startswith("stress")} | set(
        glob.glob("/dev/shm/onehop-stress-*")
    )


def test_schedules_hold_and_each_fault_is_told(onehop) -> None:
    before = left()

    def play(*words) -> Any:
        done = subprocess.run(
            [onehop, "stress", "rings", "--lab", "--seed", "5", "--json", *words],
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        if done.returncode == NO_IO:
            raise Skip(done.stderr.strip())
        check(left() == before, "the lab is gone")
        return done

    faults, summary = check_in_time(play, 3)
    check(
        faults
        and all(fault["io"] in ("udp", "afxdp") and fault["recovery_ms"] > 0 for fault in faults),
        f"with port and recovery: {faults}",
    )
    print(f"      {summary}")


def test_an_interrupted_run_leaves_nothing(onehop) -> None:
    before = left()
    process = subprocess.Popen(
        [onehop, "stress", "rings", "--lab", "--quiet"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and left() == before:
        time.sleep(0.05)
    if process.poll() == NO_IO:
        raise Skip("the lab cannot be built here")
    check(process.poll() is None, f"it runs: {process.returncode}")
    process.send_signal(signal.SIGINT)
    check(
        process.wait(PATIENCE) == INTERRUPTED,
        f"it was interrupted, and says so: {process.returncode}",
    )
    check(left() == before, "nothing of it is left")


if __name__ == "__main__":
    sys.exit(main(globals()))
