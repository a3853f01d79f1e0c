#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Bounds that cannot vanish: docs/bounds.toml lists each one that a page ever required, and each is
still judged.

A bound that no longer holds is missed on its page. One that is no longer the right question gets
`replaced`, with the reason, where it is written: it is judged and shown all the same, beside what
is required instead. Nothing is taken from the list; git remembers it.

Used by tidy; as a program, with --add, it adds what is judged and not yet listed.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

LIST = "docs/bounds.toml"
SCENARIO = re.compile(r"configs/ns3/([\w-]+)\.toml")


def scenario_bounds(tree) -> Iterator[Any]:
    """Of the papers' tables, one line per [[bounds]]."""
    for path, text in sorted(tree.texts.items()):
        if not (found := SCENARIO.fullmatch(path)):
            continue
        for bound in tomllib.loads(text).get("bounds", []):
            if "replaced" in bound and not bound["replaced"].strip():
                raise ValueError(
                    f"{path}: {bound['metric']}, {bound['row']}: replaced, without a reason")
            columns = " + ".join(bound.get("columns", ["all columns"]))
            limit = (f">= {bound['at_least']:g}"
                     if "at_least" in bound else f"<= {bound['at_most']:g}")
            of = ", ".join(bound[key] for key in ("of_row", "of_column") if key in bound)
            yield (f"{found[1]}: {bound['metric']}, {bound['row']}, {columns}: "
                   f"{limit}{f' of {of}' if of else ''}")


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


def compare_bounds(tree) -> Iterator[Any]:
    """Of tools/compare's cases, as it lists them itself."""
    if "tools/compare" in tree.texts:
        done = subprocess.run(
            [sys.executable, str(tree.root / "tools/compare"), "--bounds"], capture_output=True,
            text=True, check=True)
        yield from done.stdout.splitlines()


def ever_listed(tree) -> set[Any]:
    """What the list held in any commit before this one."""
    done = subprocess.run([
        "git", "-c", f"safe.directory={tree.root}", "-C",
        str(tree.root), "log", "-p", "--unified=0", "--format=", "--", LIST
    ], capture_output=True, text=True, check=False)
    return set(re.findall(r'^[-+]  "(.*)",$', done.stdout, re.M))


def judged(tree) -> dict[Any, Any]:
    return {"papers": list(scenario_bounds(tree)), "compare": list(compare_bounds(tree))}


def findings(tree) -> Iterator[Any]:
    """findings yields (path, text)."""
    try:
        now = judged(tree)
    except (KeyError, ValueError, subprocess.CalledProcessError) as error:
        yield LIST, f"the bounds cannot be read: {error}"
        return
    yield from lost_references(tree)
    if LIST not in tree.texts:
        if any(now.values()):
            yield LIST, ("it is not there: every bound of configs/ns3 and tools/compare is listed "
                         "in it")
        return
    kept = tomllib.loads(tree.texts[LIST])
    for page, bounds in now.items():
        listed = kept.get(page, [])
        for bound in sorted(set(listed) - set(bounds)):
            yield LIST, ("nothing judges this any more; a bound is replaced, with a reason, and "
                         f"not removed: {bound}")
        for bound in sorted(set(bounds) - set(listed)):
            yield LIST, f"a bound that is not listed (tools/tidy/bounds.py --add): {bound}"
    for bound in sorted(
            ever_listed(tree) - {bound for bounds in kept.values() for bound in bounds}):
        yield LIST, f"this was listed, and is no longer: {bound}"


def add(tree) -> None:
    """add puts each unlisted bound at the end of its page's list."""
    text = tree.texts[LIST]
    for page, bounds in judged(tree).items():
        new = [bound for bound in bounds if bound not in tomllib.loads(text).get(page, [])]
        at = text.index("]\n", text.index(f"{page} = [\n"))
        text = text[:at] + "".join(f'  "{bound}",\n' for bound in new) + text[at:]
        print(*new, sep="\n", end="\n" if new else "")
    (tree.root / LIST).write_text(text)


if __name__ == "__main__":
    import tidy

    parser = argparse.ArgumentParser(
        description="The list of every bound that a page ever required.")
    parser.add_argument("--add", action="store_true", required=True,
                        help="list what is judged and not yet listed")
    parser.parse_args()
    add(tidy.read_tree(pathlib.Path(__file__).resolve().parents[2]))
