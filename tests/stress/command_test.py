#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""`onehop stress rings` as users run it: command_test.py ONEHOP.

Goal:   right words give a report, JSON lines and a time series; wrong ones give exit code 2 and one
        clear line.
Method: the real program, a few schedules at a time. Bounds: none on time.
"""

from typing import Any
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))
from program import check, main  # noqa: E402  (found beside the lab's tests)

OK, BROKEN, USAGE, FILE = 0, 1, 2, 8


def run(onehop, *words) -> subprocess.CompletedProcess[Any]:
    return subprocess.run(
        [onehop, "stress", "rings", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def test_a_report_says_what_was_played(onehop) -> None:
    done = run(onehop, "--schedules", 20, "--seed", 3)
    check(done.returncode == OK, done.stderr)
    for words in (
        "20 schedules of seed 3: 4000 faults",
        "lower queue",
        "below X_under",
        "every invariant held",
    ):
        check(words in done.stdout, f"'{words}' in: {done.stdout}")
    check(all(len(line) <= 80 for line in done.stdout.splitlines()), f"80 columns: {done.stdout}")


def test_json_is_one_object_per_line_and_the_same_for_any_number_of_workers(onehop) -> None:
    ends = []
    for jobs in (1, 3):
        done = run(onehop, "--schedules", 20, "--seed", 3, "--json", "--jobs", jobs)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        check(
            len(lines) == 1 and lines[0]["schema_version"] == 1 and lines[0]["type"] == "stress",
            done.stdout,
        )
        check(lines[0]["is_held"] is True and lines[0]["events_total"] == 4000, "all were played")
        check(
            sum(count for _, count in lines[0]["tx_queue"]["histogram_bytes_us"]) > 0,
            "the histogram counts",
        )
        ends.append(
            {key: value for key, value in lines[0].items() if key not in ("seconds", "cpu_seconds")}
        )
    check(ends[0] == ends[1], "the workers change nothing")


def test_a_time_series_has_a_row_per_tick(onehop) -> None:
    with tempfile.TemporaryDirectory(prefix="onehop-stress-") as folder:
        path = Path(folder, "series.csv")
        done = run(onehop, "--only", 5, "--out", path)
        check(done.returncode == OK, done.stderr)
        lines = path.read_text().splitlines()
        check(lines[0].startswith("# onehop stress rings --seed 1 --only 5"), lines[0])
        check(lines[1].split(",")[0] == "schedule" and len(lines) > 100, f"{len(lines)} rows")
        check(
            all(len(line.split(",")) == len(lines[1].split(",")) for line in lines[2:]),
            "rows as wide as the first",
        )
        check(
            "1 schedule of seed 1: " in done.stdout and " 0 s of virtual time" not in done.stdout,
            f"one is one, and takes time: {done.stdout}",
        )
        done = run(onehop, "--only", 5, "--out", Path(folder, "none", "x.csv"))
        check(
            done.returncode == FILE and "Name a file" in done.stderr,
            f"a folder that is not there is 8, and what to do: {done.stderr}",
        )


def test_wrong_words_are_2_and_say_what_is_right(onehop) -> None:
    with tempfile.TemporaryDirectory(prefix="onehop-stress-") as folder:
        bad = Path(folder, "bad.toml")
        bad.write_text('law = "auto"\n[[event]]\nfault = "earthquake"\n')
        for words, expected in (
            (("--law", "fastest"), "safe-range"),
            (("--fault", "earthquake"), "drain-down"),
            (("--schedules", 0), "--schedules"),
            (("--events", "many"), "--events"),
            (("--only", -1), "--only"),
            (("--jobs", 0), "--jobs"),
            (("--schedules", 5000, "--out", "/dev/null"), "--only"),
            (("--config", Path(folder, "none.toml")), "none.toml"),
            (("--config", bad), "bad.toml:3"),
            (("--config", bad, "--law", "auto"), "excludes"),
            (("extra",), "extra"),
            (("--io", "udp"), "--lab"),
            (("--iface", "lo"), "--to"),
            (("--to", "h"), "--iface"),
            (("--lab", "--iface", "lo", "--to", "h"), "excludes"),
            (("--lab", "--io", "tcp"), "udp"),
            (("--lab", "--out", "x"), "excludes"),
            (("--lab", "--fault", "jitter"), "link-down"),
            (("--iface", "lo", "--to", "h", "--fault", "mtu"), "excludes"),
        ):
            done = run(onehop, *words)
            check(done.returncode == USAGE, f"{words}: 2, not {done.returncode}: {done.stderr}")
            check(expected in done.stderr, f"{words}: '{expected}' in: {done.stderr}")
    alone = subprocess.run(
        [onehop, "stress"], capture_output=True, text=True, timeout=60, check=False
    )
    check(alone.returncode == USAGE, "stress what?")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
