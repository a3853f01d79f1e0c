#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""onehop-ns3 as a user meets it: wrong arguments, a small scenario with its files, and a bound that
does not hold."""
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

SCENARIO = """
title = "small"
source = "none"
metrics = ["throughput", "delay_p95"]
seeds = 2
[run]
warm_up_s = 0.05
measure_s = 0.05
[[columns]]
name = "0"
[[columns]]
name = "1 %"
link = { phy_loss = 0.01 }
[[rows]]
name = "auto"
flow = { law = "auto" }
[[rows]]
name = "UDP"
flow = { kind = "udp" }
[[bounds]]
metric = "throughput"
row = "auto"
at_least = LEAST
"""


def run(program, *arguments) -> subprocess.CompletedProcess[Any]:
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def test_wrong_arguments(program) -> None:
    for arguments in ("", "--scenario", "--scenario /nonexistent.toml", "--scenario /dev/null",
                      "--bogus", "--scenario x.toml --seed 0", "--scenario x.toml --jobs none"):
        done = run(program, *arguments.split())
        assert done.returncode == 2, (arguments, done)
        assert done.stderr.strip() and not done.stdout, (arguments, done)
    assert run(program, "--help").returncode == 0


def test_a_small_scenario(program, folder) -> None:
    path = folder / "small.toml"
    path.write_text(SCENARIO.replace("LEAST", "100"))
    done = run(program, "--scenario", str(path), "--out", str(folder / "out"), "--quiet")
    assert done.returncode == 0, done
    assert "+-" in done.stdout and "ok " in done.stdout and "MISS" not in done.stdout, done.stdout
    table = json.loads((folder / "out" / "small.json").read_text())
    assert table["seeds"] == 2 and len(table["points"]) == 8
    assert (folder / "out" / "small-throughput.gp").exists()
    again = run(program, "--scenario", str(path), "--json", "--quiet")
    hashes = [[point["result"]["trace_hash"] for point in one["points"]]
              for one in (table, json.loads(again.stdout))]
    assert hashes[0] == hashes[1] and len(set(hashes[0])) == 8, hashes
    one = json.loads(
        run(program, "--scenario", str(path), "--json", "--quiet", "--short", "--seed", "9").stdout)
    assert one["is_short"] and {point["seed"] for point in one["points"]} == {9}


def test_a_bound_that_does_not_hold(program, folder) -> None:
    path = folder / "miss.toml"
    path.write_text(SCENARIO.replace("LEAST", "9999"))
    done = run(program, "--scenario", str(path), "--quiet", "--seeds", "1")
    assert done.returncode == 1 and "MISS" in done.stdout, done
    # shown, not judged
    assert run(program, "--scenario", str(path), "--quiet", "--short").returncode == 0


def main(program) -> None:
    test_wrong_arguments(program)
    with tempfile.TemporaryDirectory() as name:
        test_a_small_scenario(program, pathlib.Path(name))
        test_a_bound_that_does_not_hold(program, pathlib.Path(name))


if __name__ == "__main__":
    main(sys.argv[1])
