#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What the pages of figures say of bounds: page_figures_test.py ROOT. Nothing is measured.

Goal:   a bound is met only with all its seeds, one that was replaced stays on the page with its
        reason and binds nobody, no page opens with more than ten lines, what a page promises can be
        read from it, and no figure is above what the link carries.
Method: the modules of tools/measure/papers.d and tools/measure/compare.d, with made-up figures.
"""

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(sys.argv[1]).resolve()
for name in ("papers.d", "compare.d"):
    sys.path.insert(0, str(ROOT / "tools/measure" / name))
sys.dont_write_bytecode = True

import lab as labs  # noqa: E402
import page  # noqa: E402
from page import figures  # noqa: E402
import report  # noqa: E402


def table(counts, bounds, failures=(), is_short=False) -> dict[Any, Any]:
    cells = [[{"mean": 1.0, "half_width": 0.1, "count": count}] for count in counts]
    return {
        "title": "t", "seeds": 3, "rows": [f"r{i}" for i in range(len(counts))], "columns": ["c"],
        "bounds": bounds, "failures": list(failures), "is_short": is_short,
        "metrics": [{"name": "jain", "unit": "", "digits": 2,
                     "cells": cells}], "commits": ["`0123456789ab`"]
    }


def bound(row, is_held=True, replaced="") -> dict[Any, Any]:
    return {
        "text": f"jain, {row}, c: 0.9 >= 0.8", "is_measured": True, "is_held": is_held,
        "replaced": replaced
    }


def test_a_bound_without_all_its_seeds_is_not_met() -> None:
    tables = {
        "one": table(
            [3, 2, 3],
            [bound("r0"), bound("r1"), bound("r2", is_held=False)], ["r1, c, seed 2: it ended"])
    }
    states = {one["text"]: state for _, one, state in page.bounds_of(tables)}
    assert list(states.values()) == ["met", "**not met**: a run is missing", "**not met**"], states
    text = "\n".join(page.summary_lines(tables))
    assert "every run ends well: r1, c, seed 2: it ended | **not met**" in text, text
    opening = "\n".join(page.opening_lines(tables))
    assert "1 of 3 bounds are met" in opening and "does not hold in one" in opening, opening
    short = {"one": table([3], [bound("r0")], is_short=True)}
    assert [state for _, _, state in page.bounds_of(short)] == ["not yet"]


def test_a_replaced_bound_stays_and_binds_nobody() -> None:
    tables = {
        "one": table([3, 3],
                     [bound("r0"), bound("r1", is_held=False, replaced="the reason")])
    }
    assert [one["text"] for _, one, _ in page.bounds_of(tables)] == ["jain, r0, c: 0.9 >= 0.8"]
    text = "\n".join(page.opening_lines(tables))
    assert "| one | jain, r1, c: 0.9 >= 0.8 | **not met** | the reason |" in text, text
    assert not page.is_missed(bound("r1", is_held=False, replaced="x")) and page.is_missed(
        bound("r1", is_held=False))
    metrics = [
        report.Metric("now", "what is required", "", ">=", 1.0),
        report.Metric("old", "what was", "%", ">=", 2.0, "the reason")
    ]
    result = report.Result("case", "about", metrics)
    result.add({"now": 1.5, "old": 1.5})
    rows = result.rows()
    assert rows[0][4] == "ok" and rows[1][3:] == [">= 2 no longer", "missed; the reason"], rows
    assert result.is_ok, "what is no longer required fails nobody"
    text = "\n".join(report.opening([result]))
    assert "1 of 1 bounds hold" in text, text
    assert "| case | what was [%]: 1.5 >= 2 | missed | the reason |" in text, text
    for _ in range(2):
        result.add({"now": 0.5, "old": 1.5})
    assert not result.is_ok and result.rows()[0][4] == "FAIL", result.rows()
    assert list(report.bound_lines([("case", "about", metrics, None)
                                    ])) == ["case: what is required: >= 1", "case: what was: >= 2"]


def test_a_page_says_what_it_promises() -> None:
    """What its writer puts there is what a reader finds."""
    metrics = [
        report.Metric("now", "|what| is", "ms", "<=", 0.25),
        report.Metric("old", "what was", "", "==", 2.0, "the reason"),
        report.Metric("free", "what is not required")
    ]
    result = report.Result("case-a", "about", metrics)
    result.add({"now": 0.2, "old": 1.0, "free": 3.0})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "new", "page.md")
        report.write_page(path, "t", [result], "x", "onehop 1", 0.0, "none", [])
        bounds = set(figures.bounds_of(path.read_text()))
    assert bounds == {figures.Bound("case-a", "|what| is", "<=", "0.25"),
                      figures.Bound("case-a", "what was", "==", "2")}, bounds
    assert {one.is_met for one in bounds if one.relation == "<="} == {True}
    shown = table([3, 3], [bound("r0"), bound("r1", is_held=False)])
    shown |= {"played_on": "2026-11-28", "cpu_s": 7.4, "source": "s", "note": "n", "differs": [],
              "paper": [{"metric": "jain", "row": "r1", "column": "c", "value": "> 2"}]}
    text = page.document({"one": shown}, [])
    assert [(one.what, one.limit, one.is_met) for one in figures.bounds_of(text)
            ] == [("jain, r0, c", "0.8", True), ("jain, r1, c", "0.8", False)], text
    assert page.read_page(text) == {"one": {
        "kind": "whole", "cpu_s": 7,
        "cells": {("jain", row, "c"): (1.0, 0.1) for row in ("r0", "r1")}}}, text


def test_a_page_opens_with_ten_lines_at_most() -> None:
    def lines_of(text) -> list[Any]:
        return [line for line in text if line.startswith("- ")]

    for count in (0, 1, 9, 10, 50):
        results = []
        for i in range(count):
            results.append(
                report.Result(f"case-{i}", "about", [report.Metric("a", "a", "", ">=", 1.0)]))
            results[-1].add({"a": 0.5})
        names = [f"case-{i}" for i in range(count)]
        tables = {name: table([3], [bound("r0", is_held=False)]) for name in names}
        for opening in (lines_of(report.opening(results)), lines_of(page.opening_lines(tables))):
            assert len(opening) == min(1 + count, 10) and f"0 of {count} bounds" in opening[0], (
                opening)
            assert all(name in "".join(opening)
                       for name in names), "each that misses one is named"


def test_no_figure_is_above_its_ceiling() -> None:
    wire = (ROOT / "engine/wire/frame.hpp").read_text()
    overhead = sum(int(re.search(rf"{part}_bytes = (\d+);", wire)[1]) for part in ("header", "tag"))
    assert labs.FRAME_BYTES == 14 + 1500 and labs.PAYLOAD_BYTES == 1500 - 20 - 8 - overhead, (
        overhead)
    assert abs(labs.of_ceiling(97.0, 100.0) - 0.97) < 1e-9
    try:
        labs.of_ceiling(101.9, 100.0)
    except labs.LabError as error:
        assert "carries" in str(error)
    else:
        raise AssertionError("1.019 of a ceiling is no figure")


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"ok    {name[5:].replace('_', ' ')}")
