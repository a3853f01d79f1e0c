#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""`onehop stress rings --lab`: lab_test.py ONEHOP. Root.

Goal:   each schedule's transfer arrives whole over both ports, each fault is told, and nothing of the lab stays.
Method: three schedules. Bounds: none on time; how soon the link is full again is the command's own verdict, which a busy machine
        can only spoil: exit code 1 is taken where all that it complains of is a recovery that came late, or none that could be seen.
"""

import glob
import json
import os
import signal
import subprocess
import sys
import time

SKIP = 77


def check(condition, claim):
    if not condition:
        raise AssertionError(claim)


def namespaces():
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout


def main():
    if os.geteuid() != 0:
        print("skipped: network namespaces need root")
        return SKIP
    before = namespaces()
    done = subprocess.run([sys.argv[1], "stress", "rings", "--lab", "--seed", "5", "--schedules", "3", "--json"], capture_output=True, text=True,
                          timeout=500, check=False)
    if done.returncode == 9:
        print(f"skipped: {done.stderr.strip()}")
        return SKIP
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    check(lines and lines[-1]["type"] == "stress_lab" and lines[-1]["schedules_total"] == 3, f"a summary at the end: {done.stdout} {done.stderr}")
    faults = [line for line in lines if line["type"] == "stress_lab_fault"]
    check(len(faults) == lines[-1]["faults_total"], "each fault is told")
    check(all(fault["io"] in ("udp", "afxdp") and fault["recovery_ms"] >= 0 for fault in faults), "with its port and its recovery")
    check(done.returncode == (0 if lines[-1]["is_held"] else 1), f"the exit code is the verdict, not {done.returncode}")
    check(namespaces() == before, "the lab is gone")
    work = set(glob.glob("/dev/shm/onehop-stress-*"))
    process = subprocess.Popen([sys.argv[1], "stress", "rings", "--lab", "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and namespaces() == before:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    check(process.wait(60) != 0, "it was interrupted")
    check(namespaces() == before and set(glob.glob("/dev/shm/onehop-stress-*")) == work, "nothing of an interrupted run is left")
    print(f"ok    {lines[-1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
