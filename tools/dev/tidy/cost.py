#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""cost: the table "What it costs" of README.md, made of the newest page `cost` of docs/results.

README.md has it between two marks; nothing there is written by hand. Used by tidy, which compares
it; as a program it prints the block, and with --write writes it. Exit code: 0; 1 that page has no
such figures; 2 wrong arguments.
"""

import argparse
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "measure/results.d"))

import figures  # noqa: E402

PAGE, SOURCE = "README.md", "cost"
BEGIN, END = "<!-- by tools/dev/tidy/cost.py --write; do not edit -->", "<!-- to here -->"
# Row of a case -> what README calls it, and case -> column. In this order.
PROGRAMS = {
    "onehop --io auto, the default": "onehop (encrypted, verified)",
    "curl from nginx, TLS 1.3": "curl from nginx, TLS 1.3",
    "scp aes128-gcm": "scp (aes128-gcm)",
    "curl from nginx, plain, sendfile": "curl from nginx (plain, sendfile)",
    "rsync daemon": "rsync, daemon (plain)"
}
BUSY, OF_WORSE = "whole machine busy", ", the worse of both"
COLUMNS = {
    "gib-gro": ("GRO", OF_WORSE), "gib-single": ("no GRO", OF_WORSE),
    "gib-9000": ("MTU 9000", OF_WORSE), "wakes-100m": ("100 Mbit/s", ""),
    "wakes-300m": ("300", ""), "wakes-600m": ("600", "")
}


def section(text, name) -> Any:
    found = re.search(rf"^## {re.escape(name)}\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    return found[1] if found else ""


def medians(text) -> dict[Any, Any]:
    """What each row of a case is -> its median."""
    return {
        what.strip(): float(value)
        for what, value in re.findall(r"^\| ([^|]+) \| ([\d.]+) \|", text, re.M)
    }


def block(path, results) -> str | None:
    """The lines between the marks, or nothing where results has no such figures."""
    columns = [(medians(section(results, case)), of) for case, (_, of) in COLUMNS.items()]
    rows = []
    for name, label in PROGRAMS.items():
        found = [column.get(f"{name}: {BUSY}{of} [ns/B]") for column, of in columns]
        if any(found):
            rows.append([label, *(f"{value:.1f}" if value else "" for value in found)])
    head = dict(re.findall(r"^- (machine|commit|date): (.+)$", results, re.M))
    if not rows or len(head) < 3:
        return None
    return "\n".join([
        "", "| the whole machine busy, ns/byte | "
        + " | ".join(text for text, _ in COLUMNS.values()) + " |",
        "|---|" + "---:|" * len(COLUMNS), *(f"| {' | '.join(row)} |" for row in rows), "",
        "Both ends are on this machine. The first three columns are 1 GiB as fast as the CPUs go.",
        f"{head['machine']}, commit {head['commit']}, {head['date']}; [all results]({path}).", ""
    ])


def with_block(page, text) -> str | None:
    begin, end = page.find(BEGIN), page.find(END)
    return None if begin < 0 or end < begin else page[:begin
                                                      + len(BEGIN)] + "\n" + text + page[end:]


def findings(tree) -> Iterator[Any]:
    """(path, line, text) where README's table is not what the results say."""
    source = figures.newest(tree.texts, SOURCE)
    if source is None:
        return
    text = block(source, tree.texts[source])
    page = tree.texts.get(PAGE, "")
    if text is None:
        yield source, 1, f"no case has figures for {PAGE}"
    elif with_block(page, text) != page:
        yield PAGE, 1, f"'What it costs' is not what {source} says: tools/dev/tidy/cost.py --write"


def main(argv) -> int:
    parser = argparse.ArgumentParser(description="README's table of costs, of docs/results.")
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[3])
    parser.add_argument("--write", action="store_true", help="write it into README.md")
    options = parser.parse_args(argv)
    source = figures.newest_below(options.root, SOURCE)
    text = block(source.relative_to(options.root), source.read_text()) if source else None
    if text is None:
        print(f"cost: no page {SOURCE} with its cases, commit, machine and date",
              file=sys.stderr)
        return 1
    if not options.write:
        print(text.strip())
        return 0
    path = options.root / PAGE
    page = with_block(path.read_text(), text)
    if page is None:
        print(f"cost: {PAGE} lacks the marks {BEGIN} and {END}", file=sys.stderr)
        return 1
    path.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
