#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""onehop-fwp as tools/measure/papers calls it: fwp_command_test.py ONEHOP-FWP.

Goal:   files, JSON and exit codes are what is promised, also for wrong arguments. The numbers are
        fwp_test.cpp's.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


NAMES = ("fwp-speed-up", "fwp-cubic", "fwp-reports")


def run(*arguments) -> subprocess.CompletedProcess[Any]:
    return subprocess.run([sys.argv[1], *map(str, arguments)], capture_output=True, text=True,
                          check=False)


def check(condition, claim) -> None:
    if not condition:
        sys.exit(f"FAIL: {claim}")


with tempfile.TemporaryDirectory() as folder:
    done = run("--short", "--quiet", "--json", "--out", folder)
    check(done.returncode == 0, f"--short judges nothing: {done.returncode} {done.stderr}")
    lines = done.stdout.splitlines()
    check([json.loads(line)["id"] for line in lines] == list(NAMES), "one JSON line per table")
    for name in NAMES:
        table = json.loads(Path(folder, f"{name}.json").read_text())
        check(
            table["type"] == "fwp" and table["id"] == name and table["is_short"]
            and table["seeds"] == 1, f"{name}: {table['type']}")
        [metric] = table["metrics"]
        check(
            len(metric["cells"]) == len(table["rows"])
            and all(len(line) == len(table["columns"]) for line in metric["cells"]),
            f"{name}: cells")
        check(
            all(cell["mean"] > 0.3 and cell["count"] == 1 for line in metric["cells"]
                for cell in line), f"{name}: {metric['cells']}")
        check(all(set(bound) == {"text", "is_measured", "is_held"} for bound in table["bounds"]),
              f"{name}: bounds")
        check(
            bool(table["bounds"]) == (name != "fwp-reports"),
            f"{name}: the paper says nothing of reports, and of the others what must hold")
        text = Path(folder, f"{name}.txt").read_text()
        check(text.startswith("# "), f"{name}.txt begins with the command line")
        check(("bounds" in text and "met" in text) == (name != "fwp-reports")
              and "in brackets the paper's" in text, text)
        check("yerrorlines" in Path(folder, f"{name}.gp").read_text(), f"{name}.gp")
    check(
        Path(folder, "fwp-speed-up.svg").exists() or "gnuplot is not installed" in done.stderr,
        "pictures, or why there are none")
for arguments in (("--seeds", 0), ("--seconds", 121), ("--sometimes",), ("--seed", "x")):
    check(run(*arguments).returncode == 2, f"{arguments} is 2")
blocked = run("--short", "--quiet", "--out", "/proc/nowhere")
check(blocked.returncode == 8 and "/proc/nowhere" in blocked.stderr,
      f"a folder that cannot be made: {blocked.returncode} {blocked.stderr}")
check("bounds" in blocked.stdout and "met" in blocked.stdout
      and "in brackets the paper's" in blocked.stdout, f"without --json: text: {blocked.stdout}")
print("ok")
