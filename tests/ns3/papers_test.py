#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""tools/measure/papers with two small tables: the page that it makes, in one piece and in shards,
what it takes up again, and whether it notices a promise that is broken."""
import json
import os
import pathlib
import re
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
        self.folder, self.configs = folder, folder / "configs"
        self.command = [
            sys.executable, papers, "--program", program, "--configs", str(self.configs), "--jobs",
            "2", "--only", "one", "--only", "two"
        ]
        self.configs.mkdir()
        for name in ("one", "two"):
            (self.configs / f"{name}.toml").write_text(SCENARIO.replace("NAME", name))

    def run(self, *arguments, results="results") -> subprocess.CompletedProcess[Any]:
        where = ["--output", self.folder / "papers.md", "--results", self.folder / results]
        return subprocess.run([*self.command, *map(str, where), *map(str, arguments)],
                              capture_output=True, text=True, check=False)

    def page(self) -> str:
        """Without what a run took."""
        return re.sub(r"\d+ s of CPU", "", (self.folder / "papers.md").read_text())

    def table(self, name) -> Any:
        return json.loads((self.folder / "results" / f"{name}.json").read_text())

    def keep(self, name, table) -> None:
        (self.folder / "results" / f"{name}.json").write_text(json.dumps(table))


def test_wrong_arguments(bench) -> None:
    for arguments in (["--bogus"], ["--only", "three"], ["--jobs", "0"],
                      ["--check-row", "yesterday"], ["--short", "--bounded"],
                      ["--configs", "/nonexistent"], ["--merge", "/nonexistent"], ["--merge"],
                      ["--shard", "0/2"], ["--shard", "3/2"], ["--shard", "1"], ["--shard", "1/0"],
                      ["--shard", "1/2", "--merge", "/tmp"]):
        done = bench.run(*arguments)
        assert done.returncode == 2 and done.stderr, (arguments, done)
    assert bench.run("--program", "/nonexistent").returncode == 77
    assert bench.run("--check-row").returncode == 77  # there is no page
    assert bench.run("--merge", bench.configs).returncode == 1  # no table is there


def test_short_bounded_whole(bench) -> None:
    done = bench.run("--short", results="short")
    assert done.returncode == 0, done
    page = bench.page()
    assert ("## one (short" in page and "*(4711)*" in page
            and "| one | throughput, auto, a" in page and "| not yet |" in page), page
    assert bench.run("--check-row").returncode == 77  # a short row says nothing
    done = bench.run("--bounded", results="bounded")
    page = bench.page()
    assert done.returncode == 0 and "| met |" in page and "| wdtcp |" not in page, (done, page)
    done = bench.run()
    assert done.returncode == 0, done
    page, table = bench.page(), bench.table("one")
    assert table["rows"] == ["auto", "UDP", "wdtcp"] and table["seeds"] == 2, table
    assert "| step | 1 | 2 |" in page and "Not played yet: fwp." in page, page
    merged = bench.run("--merge", *(bench.folder / name for name in ("short", "results",
                                                                      "bounded")))
    assert merged.returncode == 0 and bench.page() == page, "whole tables come before others"


def test_shards_make_the_page_of_one_run(bench) -> None:
    for kind, count in (("--short", 2), ("--bounded", 3)):
        assert bench.run(kind, results="together").returncode == 0
        whole, folders = bench.page(), []
        (bench.folder / "papers.md").unlink()
        for i in range(1, count + 1):
            folders.append(bench.folder / f"{kind}-{i}-of-{count}")
            done = bench.run(kind, "--shard", f"{i}/{count}", results=folders[-1].name)
            assert done.returncode == 0 and folders[-1].is_dir(), done
            assert not (bench.folder / "papers.md").exists(), "a shard makes no page"
        done = bench.run(kind, "--merge", *folders)
        assert done.returncode == 0 and bench.page() == whole, (bench.page(), whole)
        done = bench.run(kind, "--merge", *reversed(folders))
        assert done.returncode == 0 and bench.page() == whole, "in any order"
        played = [sum(folder.joinpath(f"{name}.json").exists() for name in ("one", "two"))
                  for folder in folders]
        assert sum(played) < 2 * count, f"each shard has played a part: {played}"
        done = bench.run(kind, "--merge", *folders[1:])
        assert done.returncode == 1 and "Not played yet: one" in bench.page(), bench.page()


def test_a_failed_run_is_among_what_must_hold(bench) -> None:
    kept = bench.table("one")
    table = bench.table("one")
    table["points"][-1] = {"row": "wdtcp", "column": "a", "seed": 2, "failure": "ended by signal 6"}
    bench.keep("one", table)
    assert bench.run("--merge", bench.folder / "results").returncode == 1
    page = bench.page()
    summary = page[page.index("## What must hold"):page.index("## one")]
    assert "wdtcp, a, seed 2: ended by signal 6 | **not met** |" in summary, summary
    bench.keep("one", kept)


def test_what_is_finished_is_taken_up_again(bench) -> None:
    (bench.folder / "results" / "two.json").unlink()
    done = bench.run("--continue")
    assert done.returncode == 0 and "one: kept" in done.stdout and "two: done" in done.stdout, done
    os.utime(bench.configs / "one.toml")
    done = bench.run("--continue")
    assert "one: done" in done.stdout and "two: kept" in done.stdout, done


def test_the_row_of_the_day(bench) -> None:
    done = bench.run("--check-row", "2026-11-21")
    assert done.returncode == 0 and "promises holds" in done.stdout, done
    assert "moved" not in done.stdout, done  # time is virtual
    days = {
        bench.run("--check-row", f"2026-11-{day}").stdout.splitlines()[0].split(": ")[1]: day
        for day in range(10, 16)
    }
    assert len(days) == 6, days  # three rows of two tables, each in its turn
    auto = next(f"2026-11-{day}" for row, day in days.items() if "'auto'" in row)
    page = bench.folder / "papers.md"
    before = page.read_text()
    page.write_text(re.sub(r"\| (auto|UDP|wdtcp) \| (\d)", r"| \1 | 99\2", before))
    done = bench.run("--check-row", auto)
    assert done.returncode == 0 and "moved: throughput, a" in done.stdout, done
    page.write_text(before)
    for name in ("one", "two"):
        path = bench.configs / f"{name}.toml"
        path.write_text(path.read_text().replace("at_least = 0.2", "at_least = 20"))
    done = bench.run("--check-row", auto)
    assert done.returncode == 0, f"the page promises no such thing: {done}"
    page.write_text(before.replace(">= 0.2000", ">= 20.0000"))
    done = bench.run("--check-row", auto)
    assert done.returncode == 1 and "no longer met: throughput, auto, a" in done.stdout, done


def main(papers, program) -> None:
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(papers, program, pathlib.Path(name))
        test_wrong_arguments(bench)
        test_short_bounded_whole(bench)
        test_shards_make_the_page_of_one_run(bench)
        test_a_failed_run_is_among_what_must_hold(bench)
        test_what_is_finished_is_taken_up_again(bench)
        test_the_row_of_the_day(bench)


if __name__ == "__main__":
    main(*sys.argv[1:])
