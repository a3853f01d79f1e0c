#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""`onehop stress rings --lab`: lab_test.py ONEHOP. Root.

Goal:   each schedule's transfer arrives whole over both ports, each fault is told, and nothing of the lab stays.
Method: three schedules. Bounds: none on time; how soon the link is full again is the command's own verdict, which a busy machine
        can only spoil: exit code 1 is taken where all that it complains of is a recovery that came late, or none that could be seen.
"""

import glob
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))
from program import PATIENCE, Skip, check, main  # noqa: E402  (found beside the lab's tests)

NO_IO = 9


def left():
    """What runs of the command have made: namespaces and folders."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return {line for line in listed.splitlines() if line.startswith("stress")} | set(glob.glob("/dev/shm/onehop-stress-*"))


def test_schedules_hold_and_each_fault_is_told(onehop):
    before = left()
    done = subprocess.run([onehop, "stress", "rings", "--lab", "--seed", "5", "--schedules", "3", "--json"], capture_output=True, text=True,
                          timeout=500, check=False)
    if done.returncode == NO_IO:
        raise Skip(done.stderr.strip())
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    check(lines and lines[-1]["type"] == "stress_lab" and lines[-1]["schedules_total"] == 3, f"a summary at the end: {done.stdout} {done.stderr}")
    faults = [line for line in lines if line["type"] == "stress_lab_fault"]
    check(len(faults) == lines[-1]["faults_total"], "each fault is told")
    check(all(fault["io"] in ("udp", "afxdp") and fault["recovery_ms"] >= 0 for fault in faults), "with its port and its recovery")
    check(done.returncode == (0 if lines[-1]["is_held"] else 1), f"the exit code is the verdict, not {done.returncode}")
    check(left() == before, "the lab is gone")
    print(f"      {lines[-1]}")


def test_an_interrupted_run_leaves_nothing(onehop):
    before = left()
    process = subprocess.Popen([onehop, "stress", "rings", "--lab", "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and left() == before:
        time.sleep(0.05)
    if process.poll() == NO_IO:
        raise Skip("the lab cannot be built here")
    check(process.poll() is None, f"it runs: {process.returncode}")
    process.send_signal(signal.SIGINT)
    check(process.wait(PATIENCE) != 0, "it was interrupted")
    check(left() == before, "nothing of it is left")


if __name__ == "__main__":
    sys.exit(main(globals()))
