# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Pages of figures (docs/results/VERSION) are promises: each bound that one of them shows is still
judged, and the pages of a tagged version stay as they were.

A bound that no longer holds is missed on the next page. One that is no longer the right question
gets `replaced`, with the reason, where it is written (`bounds` in configs/ns3, Metric in
tools/measure/compare.d): it is judged and shown all the same, beside what is required instead. Used
by tidy.
"""

import pathlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "measure/results.d"))

import figures  # noqa: E402
from figures import Bound  # noqa: E402

SCENARIO = re.compile(r"configs/ns3/([\w-]+)\.toml")
LISTED = re.compile(r"([\w-]+): (.+): (>=|<=|==) (\S+)")


def scenario_bounds(tree) -> Iterator[Bound]:
    """Of the papers' tables, one for each column of each bound."""
    for path, text in sorted(tree.texts.items()):
        if not (found := SCENARIO.fullmatch(path)):
            continue
        scenario = tomllib.loads(text)
        for bound in scenario.get("bounds", []):
            if "replaced" in bound and not bound["replaced"].strip():
                raise ValueError(
                    f"{path}: {bound['metric']}, {bound['row']}: replaced, without a reason")
            relation, key = (">=", "at_least") if "at_least" in bound else ("<=", "at_most")
            other = [bound.get("of_row", bound["row"])] + [bound[key] for key in ("of_column", )
                                                           if key in bound]
            of = ", ".join(other) if {"of_row", "of_column"} & bound.keys() else ""
            for column in bound.get("columns", [one["name"] for one in scenario["columns"]]):
                yield Bound(found[1], f"{bound['metric']}, {bound['row']}, {column}", relation,
                            str(bound[key]), of)


# What a text may not say: a page shows the rows that bounds ask for, in an order of its own.
BY_PLACE = re.compile(r"\b((?:first|last|next|upper|lower) row|row (?:above|below))\b", re.I)
SEE = re.compile(r"\(see ([^()]+)\)", re.I)


def lost_references(tree) -> Iterator[Any]:
    """(path, what a text points to that its page does not show): "last row", or "(see NAME)" where
    no bound asks for a row of that name."""
    for path, text in sorted(tree.texts.items()):
        if not SCENARIO.fullmatch(path):
            continue
        table = tomllib.loads(text)
        shown = {bound.get(key) for bound in table.get("bounds", []) for key in ("row", "of_row")}
        for words in (table.get("note", ""), *table.get("differs", [])):
            yield from ((path, f"'{found}' points by place; name the row")
                        for found in BY_PLACE.findall(words))
            yield from ((path, f"'(see {name})': its page shows no row of that name")
                        for name in SEE.findall(words) if name not in shown)


def case_bounds(tree) -> Iterator[Bound]:
    """Of the cases of tools/measure/compare and limits, as they list them themselves."""
    for program in ("tools/measure/compare", "tools/measure/limits"):
        if program not in tree.texts:
            continue
        done = subprocess.run([sys.executable, str(tree.root / program), "--bounds"],
                              capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            where, what, relation, limit = LISTED.fullmatch(line).groups()
            yield Bound(where, what, relation, limit)


def is_same(shown, judged) -> bool:
    """A page shows a limit rounded."""
    digits = len(shown.limit.partition(".")[2])
    return ((shown.where, shown.what, shown.relation, shown.of) ==
            (judged.where, judged.what, judged.relation, judged.of)
            and abs(float(shown.limit) - float(judged.limit)) <= 0.5 * 10**-digits + 1e-9)


def findings(tree) -> Iterator[Any]:
    """findings yields (path, text)."""
    pages = {path: text for path, text in tree.code((".md", )) if
             path.startswith(f"{figures.FOLDER}/")}
    try:
        judged = [*scenario_bounds(tree), *case_bounds(tree)]
    except (KeyError, ValueError, AttributeError, subprocess.CalledProcessError) as error:
        yield "configs/ns3", f"the bounds cannot be read: {error}"
        return
    yield from lost_references(tree)
    for path, text in sorted(pages.items()):
        for bound in figures.bounds_of(text):
            if not any(is_same(bound, one) for one in judged):
                yield path, ("nothing judges this any more; a bound is replaced, with a reason, "
                             f"and not removed: {bound.where}: {bound.what}: {bound.relation} "
                             f"{bound.limit}{f' of {bound.of}' if bound.of else ''}")
    for version in sorted({path.split("/")[2] for path in pages}):
        changed = figures.git(tree.root, "diff", "--name-only", f"v{version}", "--",
                              f"{figures.FOLDER}/{version}")
        for path in changed.splitlines():
            yield path, f"a page of v{version} is never edited: measure anew, for the next version"
