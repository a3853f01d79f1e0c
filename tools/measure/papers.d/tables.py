# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Tables as tools/measure/papers' page needs them: read from the files that onehop-ns3 leaves, and
put together of parts that shards have played. Plays nothing."""

import json
from typing import Any


def read(path, scenario) -> Any:
    """What the page needs of a table's file; FWP has no scenario."""
    table = json.loads(path.read_text())
    points = table.pop("points")
    table["failures"] = [
        f"{point['row']}, {point['column']}, seed {point['seed']}: {point['failure']}"
        for point in points if "failure" in point
    ]
    done = [point for point in points if "failure" not in point]
    table["cpu_s"] = {}
    for point in done:
        table["cpu_s"].setdefault(point["row"], []).append(point["result"]["cpu_s"])
    link = scenario.get("link", {})
    if "mcs_trace" in link:
        table["trace"] = trace_of(table, done, link.get("mcs_period_s", 0.5))
    return table


def trace_of(table, points, period_s) -> dict[Any, Any]:
    """Goodput, backlog and target of the first column, in steps of the changing link; the mean of
    all seeds."""
    steps: dict[Any, Any] = {}
    for point in points:
        if point["column"] != table["columns"][0]:
            continue
        for at_s, *values in point["result"]["flows"][0]["series"]:
            if at_s > 0:
                steps.setdefault(point["row"], {}).setdefault(int((at_s - 1e-6) / period_s),
                                                              []).append(values[:3])
    rows = {
        row: [[sum(value[i] for value in values) / len(values) for i in range(3)]
              for _, values in sorted(found.items())] for row, found in steps.items()
    }
    return {"period_s": period_s, "rows": rows}


def merged(parts, rows) -> Any:
    """One table of its parts: each row from one that has it. Time is virtual, so a row that two
    parts have played is the same in both, and a bound is judged where its row is."""
    owners = {row: part for part in reversed(parts) for row in part.get("rows", [])}
    rows = [row for row in rows if row in owners]
    table = dict(parts[0])
    table["commits"] = sorted({part["commit"] for part in parts})
    table["played_on"] = max(part["played_on"] for part in parts)
    table["failures"] = sorted({text for part in parts for text in part["failures"]})
    table["cpu_s"] = sum(sum(owner["cpu_s"].get(row, [])) for row, owner in owners.items())
    table["bounds"] = [next((one for one in same if one["is_measured"]), same[0])
                       for same in zip(*(part["bounds"] for part in parts))]
    if "metrics" in table:
        table["rows"] = rows
        table["metrics"] = [
            metric | {"cells": [owners[row]["metrics"][i]["cells"][owners[row]["rows"].index(row)]
                                for row in rows]}
            for i, metric in enumerate(table["metrics"])
        ]
    if "trace" in table:
        traces = {row: owners[row]["trace"]["rows"] for row in rows}
        table["trace"] = table["trace"] | {
            "rows": {row: found[row] for row, found in traces.items() if row in found}}
    return table
