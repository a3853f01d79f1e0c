#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""tools/papers with two small tables: what it keeps, what it takes up again, and whether it notices
a number that has changed."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

SCENARIO = """
title = "NAME"
source = "none"
metrics = ["throughput", "delay_p95"]
seeds = 2
[link]
mcs_trace = [11, 5]
mcs_period_s = 0.025
[run]
warm_up_s = 0.05
measure_s = 0.05
sample_ms = 5
[short]
run = { measure_s = 0.02 }
[[columns]]
name = "a"
[[rows]]
name = "auto"
flow = { law = "auto" }
[[rows]]
name = "UDP"
flow = { kind = "udp" }
[[rows]]
name = "wdtcp"
flow = { law = "wdtcp" }
[[paper]]
metric = "throughput"
row = "auto"
column = "a"
value = "4711"
[[bounds]]
metric = "throughput"
row = "auto"
at_least = 0.2
of_row = "UDP"
"""


class Bench:
    def __init__(self, papers, program, folder) -> None:
        self.command = [
            sys.executable, papers, "--program", program, "--configs",
            str(folder / "configs"), "--output",
            str(folder / "papers.md"), "--results",
            str(folder / "results"), "--jobs", "2"
        ]
        self.store, self.page = folder / "papers.json", folder / "papers.md"
        (folder / "configs").mkdir()
        for name in ("one", "two"):
            (folder / "configs" / f"{name}.toml").write_text(SCENARIO.replace("NAME", name))

    def run(self, *arguments) -> subprocess.CompletedProcess[Any]:
        return subprocess.run([*self.command, *arguments], capture_output=True, text=True,
                              check=False)


def test_wrong_arguments(bench) -> None:
    for arguments in (["--bogus"], ["--only", "three"], ["--jobs", "0"],
                      ["--check-row", "yesterday"], ["--short",
                                                     "--bounded"], ["--configs", "/nonexistent"]):
        done = bench.run(*arguments)
        assert done.returncode == 2 and done.stderr, (arguments, done)
    assert bench.run("--program", "/nonexistent").returncode == 77
    assert bench.run("--check-row").returncode == 1  # nothing was played


def test_short_bounded_whole(bench) -> None:
    done = bench.run("--short", "--only", "one", "--only", "two")
    assert done.returncode == 0, done
    page = bench.page.read_text()
    assert ("## one (short" in page and "*(4711)*" in page
            and "| one | throughput, auto, a" in page and "| not yet |" in page), (
        page)
    done = bench.run("--bounded", "--only", "one")
    assert done.returncode == 0, done
    kinds = json.loads(bench.store.read_text())["tables"]["one"]
    assert kinds["bounded"]["rows"] == ["auto", "UDP"] and kinds["short"]["rows"] == [
        "auto", "UDP", "wdtcp"
    ], kinds
    assert "| met |" in bench.page.read_text()
    assert bench.run("--only", "one").returncode == 0
    kinds = json.loads(bench.store.read_text())["tables"]["one"]
    assert list(kinds) == [
        "whole"
    ] and kinds["whole"]["seeds"] == 2 and len(kinds["whole"]["trace"]["rows"]["auto"]) >= 2, kinds
    page = bench.page.read_text()
    bench.page.unlink()
    assert bench.run("--compose").returncode == 0 and bench.page.read_text() == page


def test_a_failed_run_is_among_what_must_hold(bench) -> None:
    kept = bench.store.read_text()
    store = json.loads(kept)
    store["tables"]["one"]["whole"]["failures"] = ["wdtcp, a, seed 2: ended by signal 6"]
    bench.store.write_text(json.dumps(store))
    assert bench.run("--compose").returncode == 0
    page = bench.page.read_text()
    summary = page[page.index("## What must hold"):page.index("## one")]
    assert "wdtcp, a, seed 2: ended by signal 6 | **not met** |" in summary, summary
    bench.store.write_text(kept)


def test_what_is_finished_is_taken_up_again(bench) -> None:
    done = bench.run("--continue", "--only", "one", "--only", "two")
    assert done.returncode == 0 and "one: kept" in done.stdout and "two: done" in done.stdout, done
    scenario = pathlib.Path(bench.command[bench.command.index("--configs") + 1]) / "one.toml"
    os.utime(scenario)
    done = bench.run("--continue", "--only", "one")
    assert "one: done" in done.stdout, done


def test_the_row_of_the_day(bench) -> None:
    done = bench.run("--check-row", "2026-11-21")
    assert done.returncode == 0 and "as kept" in done.stdout, done
    rows = {
        bench.run("--check-row", f"2026-11-{day}").stdout.splitlines()[0].split(": ")[1]
        for day in range(10, 16)
    }
    assert len(rows) == 6, rows  # three rows of two tables, each in its turn
    store = json.loads(bench.store.read_text())
    for table in store["tables"].values():
        for line in table["whole"]["metrics"][0]["cells"]:
            line[0]["mean"] *= 1.5
    bench.store.write_text(json.dumps(store))
    done = bench.run("--check-row", "2026-11-21")
    assert done.returncode == 1 and "differs: throughput, a" in done.stdout, done
    for name in ("one", "two"):  # another scenario: what was kept does not stand for it
        path = pathlib.Path(bench.command[bench.command.index("--configs") + 1]) / f"{name}.toml"
        path.write_text(path.read_text().replace("measure_s = 0.05", "measure_s = 0.04"))
    done = bench.run("--check-row", "2026-11-21")
    assert done.returncode == 1 and "has changed" in done.stdout, done


def main(papers, program) -> None:
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(papers, program, pathlib.Path(name))
        test_wrong_arguments(bench)
        test_short_bounded_whole(bench)
        test_a_failed_run_is_among_what_must_hold(bench)
        test_what_is_finished_is_taken_up_again(bench)
        test_the_row_of_the_day(bench)


if __name__ == "__main__":
    main(*sys.argv[1:])
