#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""each_case PROGRAM: runs each test case of a Catch program in a process of its own.

For net_memif: where one process plugs in a pair after another, as only a test does, DPDK 22.11 now
and then frees the same memory on EAL's interrupt thread and on ours.
"""

import subprocess
import sys

program = sys.argv[1]


def list_of(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)


# Catch2 3 has other options. The exit code of version 2 is the count.
listed = list_of("--list-tests", "--verbosity", "quiet") \
    if "Catch2 v3" in list_of("--help").stdout else list_of("--list-test-names-only")
names = [line.strip() for line in listed.stdout.splitlines() if line.strip()]
failed = 0
for name in names:
    run = subprocess.run([program, name.replace(",", "\\,").replace("[", "\\[")],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    failed += run.returncode != 0
    if run.returncode != 0 or "assertion" not in run.stdout:
        failed += run.returncode == 0
        print(f"FAIL  {name}: {run.returncode}\n{run.stdout[-2000:]}")
print(f"{len(names)} cases, {failed} failed")
sys.exit(1 if failed or not names else 0)
