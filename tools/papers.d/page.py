# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""The page that tools/papers writes, from what it keeps: what holds, with which commits, the
bounds, the tables. Plays and judges nothing."""

import platform
from collections.abc import Iterator
from typing import Any

FWP = "fwp"
OPENING_LINES = 10
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
MARKS = {"whole": "", "short": " (short: one seed, short points)", "bounded": ""}


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
    for metric in table["metrics"]:
        unit = f" [{metric['unit']}]" if metric["unit"] else ""
        yield f"| {metric['name']}{unit} | " + " | ".join(table["columns"]) + " |"
        yield "|---" * (len(table["columns"]) + 1) + "|"
        for row, name in enumerate(table["rows"]):
            cells = (cell_text(table, metric, row, column)
                     for column in range(len(table["columns"])))
            yield f"| {name} | " + " | ".join(cells) + " |"
        yield ""


def bound_lines(table) -> Iterator[Any]:
    for bound in table["bounds"]:
        word = "not measured" if not bound["is_measured"] else "met" if bound[
            "is_held"] else "**not met**"
        yield f"* {word}: {bound['text']}{' (no longer required)' if bound.get('replaced') else ''}"
    for failure in table["failures"]:
        yield f"* **failed**: {failure}"
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


def table_lines(name, kinds) -> Iterator[Any]:
    first = kinds.get("whole") or kinds.get("short") or kinds["bounded"]
    kind = "whole" if "whole" in kinds else "short" if "short" in kinds else "bounded"
    yield f"## {first['title']}{MARKS[kind]}\n"
    if name == FWP:
        yield f"`{first['command_line']}`\n\n{first['text']}\n"
        return
    yield (f"`{name}`, played on {first['played_on']}, {first['seeds']} "
           f"seed{'s' if first['seeds'] > 1 else ''} per point. {first['source']} "
           f"{first['note']}\n")
    for text in first["differs"]:
        yield f"**Differs from the paper**: {text}\n"
    has_bounded = "bounded" in kinds and kind != "whole"
    if has_bounded:
        bounded = kinds["bounded"]
        yield (f"What a bound names, whole, {bounded['seeds']} seeds per point, played on "
               f"{bounded['played_on']}:\n")
        yield from metric_lines(bounded)
        yield from bound_lines(bounded)
    if kind != "bounded":
        if has_bounded:
            yield "All rows, short:\n"
        yield from metric_lines(first)
        yield from trace_lines(first)
        if not has_bounded:
            yield from bound_lines(first)


def is_missed(bound) -> bool:
    return not bound["is_held"] and not bound.get("replaced")


def judged_table(kinds) -> Any:
    """The table whose bounds count: played with all its seeds. None where there is only a short
    one."""
    return kinds.get("whole") or kinds.get("bounded")


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
    if not table or not bound["is_measured"]:
        return "not yet"
    if not has_all_seeds(table, bound):
        return "**not met**: a run is missing"
    return "met" if bound["is_held"] else "**not met**"


def bounds_of(store, names, is_replaced=False) -> Iterator[Any]:
    """(table's name, bound, its state) of what is required, or of what no longer is."""
    for name in names:
        kinds = store["tables"].get(name, {})
        table = judged_table(kinds)
        for bound in (table or kinds.get("short", {"bounds": []}))["bounds"]:
            if bool(bound.get("replaced")) == is_replaced:
                yield name, bound, state_of(table, bound)


def failures_of(store, names) -> Iterator[Any]:
    for name in names:
        for failure in (judged_table(store["tables"][name]) or {"failures": []})["failures"]:
            yield name, failure


def commit_lines(store) -> Iterator[Any]:
    """One line per commit that tables were played with."""
    commits: dict[Any, Any] = {}
    for name, kinds in store["tables"].items():
        for table in kinds.values():
            commits.setdefault(table["commit"], set()).add(name)
    for commit, names in sorted(commits.items(), key=lambda item: -len(item[1])):
        yield f"- commit: {commit}: {', '.join(sorted(names))}"


def opening_lines(store, names) -> Iterator[Any]:
    """The first lines of the page: what holds, and table by table what does not."""
    bounds = list(bounds_of(store, names))
    waiting = sum(state == "not yet" for _, _, state in bounds)
    yield "## What holds, and what does not\n"
    yield (f"- {sum(state == 'met' for _, _, state in bounds)} of {len(bounds)} bounds are "
           f"met{f', {waiting} are not yet judged' if waiting else ''}")
    missed = {
        name: [
            f"{bound['text']}{state.removeprefix('**not met**')}" for of, bound, state in bounds
            if of == name and "not met" in state
        ] for name in names
    }
    missed = {name: texts for name, texts in missed.items() if texts}
    for i, (name, texts) in enumerate(missed.items()):
        if i == OPENING_LINES - 2 and len(missed) > OPENING_LINES - 1:
            yield f"- and in {len(missed) - i} more tables: {', '.join(list(missed)[i:])}"
            break
        yield (f"- not met in {name}: "
               f"{texts[0]}{f'; and {len(texts) - 1} more' if len(texts) > 1 else ''}")
    yield ""


def replaced_lines(store, names) -> Iterator[Any]:
    replaced = list(bounds_of(store, names, is_replaced=True))
    if not replaced:
        return
    yield "## What was once required\n"
    yield ("Bounds that stood on this page: what they come to today, and why something else is "
           "required instead.\n")
    yield "| table | bound | | why it was replaced |\n|---|---|---|---|"
    for name, bound, state in replaced:
        yield f"| {name} | {bound['text']} | {state} | {bound['replaced']} |"
    yield ""


def summary_lines(store, names) -> Iterator[Any]:
    yield "## What must hold\n"
    yield "From points with all their seeds; `not yet` where only a short table was played.\n"
    yield "| table | bound | |\n|---|---|---|"
    for name, bound, state in bounds_of(store, names):
        yield f"| {name} | {bound['text']} | {state} |"
    for name, failure in failures_of(store, names):
        yield f"| {name} | every run ends well: {failure} | **not met** |"
    yield ""


def document(options, store) -> Iterator[Any]:
    names = [name for name in options.order if name in store["tables"]]
    yield "<!-- SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only -->"
    yield "# The papers' tables over ns-3" + (" (short)" if options.short else "") + "\n"
    yield from opening_lines(store, names)
    yield f"Written by `tools/papers`; never edit by hand. ns-3 3.37, {platform.machine()}."
    yield "Mean ± half of the 95 % interval (Student's t); in italics the paper's value."
    missing = [name for name in options.order if name not in store["tables"]]
    if missing:
        yield f"\nNot played yet: {', '.join(missing)}."
    yield ""
    yield from commit_lines(store)
    yield GAP_NOTES
    yield from summary_lines(store, names)
    yield from replaced_lines(store, names)
    for name in names:
        yield from table_lines(name, store["tables"][name])
