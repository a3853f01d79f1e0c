# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The page that tools/measure/papers writes of its tables: what holds, with which commits, the
bounds, the tables. read_page() is its way back. Plays and judges nothing."""

import platform
import re
import sys
from pathlib import Path
from collections.abc import Iterator
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "results.d"))

import figures  # noqa: E402

FWP = "fwp"
GAP_NOTES = """
What these numbers are: the engine's own loops, transfer core, AEAD and laws in virtual time, over \
ns-3's 802.11ac/ax MAC and PHY
and its UDP/IP. What is a model: the disk (it takes no time and checks every byte) and the control \
connection (each end's
session knows at once what the other's would tell it). `throughput` counts transport payload, as \
the papers do; of ours 44 bytes of
each 1446 are header and tag, and `goodput` counts file bytes alone. One-way delay runs from \
leaving our pacer (IP output) to
the receiving application; what a load waited before the pacer stands beside it where there is a \
load.
Where a paper's set-up is not stated (burst model, number of pairs, place of loss, buffers), its \
value stands beside ours all the same.
"""
MARKS = {"whole": "", "short": " (short: one seed, short points)",
         "bounded": " (what a bound names)"}
PLAYED = re.compile(r"`([\w-]+)`, (whole|short|bounded), played on .*?, (\d+) s of CPU\. ")
METRIC = re.compile(r"\| \*\*([^ *]+)[^*]*\*\* \|")
CELL = re.compile(r"(-?[\d.]+)(?: ± ([\d.]+))?(?: \*\(.*\)\*)?")


def kind_of(table) -> str:
    return "short" if table["is_short"] else "bounded" if table.get("is_bounded") else "whole"


def cell_text(table, metric, row, column) -> Any:
    cell = metric["cells"][row][column]
    text = "-"
    if cell:
        text = f"{cell['mean']:.{metric['digits']}f}"
        if cell["count"] > 1:
            text += f" ± {cell['half_width']:.{metric['digits']}f}"
    for value in table["paper"]:
        if (value["metric"], value["row"], value["column"]) == (metric["name"], table["rows"][row],
                                                                table["columns"][column]):
            text += f" *({value['value']})*"
    return text


def metric_lines(table) -> Iterator[Any]:
    """One table of all metrics, each below a row with its name."""
    yield "|  | " + " | ".join(table["columns"]) + " |"
    yield "|---" * (len(table["columns"]) + 1) + "|"
    for metric in table["metrics"]:
        unit = f" [{metric['unit']}]" if metric["unit"] else ""
        yield f"| **{metric['name']}{unit}** |" + " |" * len(table["columns"])
        for row, name in enumerate(table["rows"]):
            cells = (cell_text(table, metric, row, column)
                     for column in range(len(table["columns"])))
            yield f"| {name} | " + " | ".join(cells) + " |"
    yield ""


def trace_lines(table) -> Iterator[Any]:
    trace = table.get("trace")
    if not trace:
        return
    count = max((len(steps) for steps in trace["rows"].values()), default=0)
    yield (f"{table['columns'][0]}, over time in steps of {trace['period_s']} s: goodput [Mbit/s], "
           "backlog and target [kB].\n")
    yield "| step | " + " | ".join(str(i + 1) for i in range(count)) + " |"
    yield "|---" * (count + 1) + "|"
    for row, steps in trace["rows"].items():
        yield f"| {row} | " + " | ".join(f"{rate:.0f}, {backlog:.0f}, {target:.0f}"
                                         for rate, backlog, target in steps) + " |"
    yield ""


def table_lines(name, table) -> Iterator[Any]:
    kind = kind_of(table)
    yield f"## {table['title']}{MARKS[kind]}\n"
    if name == FWP:
        yield f"`{table['command_line']}`\n\n{table['text']}\n"
        return
    yield (f"`{name}`, {kind}, played on {table['played_on']}, {table['seeds']} "
           f"seed{'s' if table['seeds'] > 1 else ''} per point, {table['cpu_s']:.0f} s of CPU. "
           f"{table['source']} {table['note']}\n")
    for text in table["differs"]:
        yield f"**Differs from the paper**: {text}\n"
    yield from metric_lines(table)
    yield from trace_lines(table)


def is_missed(bound) -> bool:
    return not bound["is_held"] and not bound.get("replaced")


def has_all_seeds(table, bound) -> bool:
    """The cell that the bound names has the value of every seed; a metric of all seeds together has
    one. FWP's program has no runs that fail."""
    for metric in table.get("metrics", []):
        for row, cells in zip(table["rows"], metric["cells"]):
            for column, cell in zip(table["columns"], cells):
                if bound["text"].startswith(f"{metric['name']}, {row}, {column}:"):
                    return cell is not None and cell["count"] == (
                        1 if metric["name"].startswith("mean_") else table["seeds"])
    return "metrics" not in table or not bound["is_measured"]


def state_of(table, bound) -> str:
    """state_of is the word for a bound of a table: met, **not met**, not yet, or that a run is
    missing."""
    if table["is_short"] or not bound["is_measured"]:
        return "not yet"
    if not has_all_seeds(table, bound):
        return "**not met**: a run is missing"
    return "met" if bound["is_held"] else "**not met**"


def bounds_of(tables, is_replaced=False) -> Iterator[Any]:
    """(table's name, bound, its state) of what is required, or of what no longer is."""
    for name, table in tables.items():
        for bound in table["bounds"]:
            if bool(bound.get("replaced")) == is_replaced:
                yield name, bound, state_of(table, bound)


def commit_lines(tables) -> Iterator[Any]:
    """One line per commit that tables were played with."""
    commits: dict[Any, Any] = {}
    for name, table in tables.items():
        for commit in table["commits"]:
            commits.setdefault(commit, set()).add(name)
    for commit, names in sorted(commits.items(), key=lambda item: -len(item[1])):
        yield f"- commit: {commit}: {', '.join(sorted(names))}"


def opening_lines(tables) -> Iterator[Any]:
    """The first lines of the page: what holds, table by table what does not, and what was once
    required."""
    bounds = list(bounds_of(tables))
    states = [state for _, _, state in bounds]
    waiting = states.count("not yet")
    missed = [(name, f"{bound['text'].strip()}{state.removeprefix('**not met**')}")
              for name, bound, state in bounds if "not met" in state]
    replaced = [(name, bound["text"].strip(), state, bound["replaced"])
                for name, bound, state in bounds_of(tables, is_replaced=True)]
    yield from figures.opening(
        f"{states.count('met')} of {len(bounds)} bounds are met"
        f"{f', {waiting} are not yet judged' if waiting else ''}", missed, replaced)


def summary_lines(tables) -> Iterator[Any]:
    yield "## What must hold\n"
    yield "From points with all their seeds; `not yet` where only a short table was played.\n"
    yield "| table | bound | |\n|---|---|---|"
    for name, bound, state in bounds_of(tables):
        yield f"| {name} | {bound['text']} | {state} |"
    for name, table in tables.items():
        for failure in [] if table["is_short"] else table["failures"]:
            yield f"| {name} | every run ends well: {failure} | **not met** |"
    yield ""


def document(tables, missing) -> str:
    """The page. `tables` in the order in which a reader meets them; `missing` are texts."""
    is_short = all(table["is_short"] for table in tables.values())
    lines = ["<!-- SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only -->",
             "# The papers' tables over ns-3" + (" (short)" if is_short else "") + "\n",
             *opening_lines(tables),
             f"Written by `tools/measure/papers`. ns-3 3.37, {platform.machine()}.",
             "Mean ± half of the 95 % interval (Student's t); in italics the paper's value."]
    if missing:
        lines.append(f"\nNot played yet: {', '.join(missing)}.")
    lines += ["", *commit_lines(tables), GAP_NOTES, *summary_lines(tables)]
    for name, table in tables.items():
        lines += table_lines(name, table)
    return "\n".join(lines).rstrip() + "\n"


def read_page(text) -> dict[str, Any]:
    """read_page returns, by table: its kind, what it took and its cells, (mean, half width) by
    metric, row and column. FWP's have none."""
    tables: dict[str, Any] = {}
    for section in text.split("\n## ")[1:]:
        if not (found := PLAYED.search(section)):
            continue
        cells, columns, metric = {}, None, None
        for line in section.splitlines():
            row = line.removeprefix("| ").removesuffix(" |").split(" | ")
            if not line.startswith("|"):
                columns = metric = None
            elif columns is None:
                columns = row[1:]
            elif name := METRIC.match(line):
                metric = name[1]
            elif metric:
                cells |= {(metric, row[0], column): (float(cell[1]), float(cell[2] or 0))
                          for column, value in zip(columns, row[1:])
                          if (cell := CELL.fullmatch(value))}
        tables[found[1]] = {"kind": found[2], "cpu_s": int(found[3]), "cells": cells}
    return tables
