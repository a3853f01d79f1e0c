# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Pages of figures, docs/results/VERSION/NAME.md: what those who write them share, and what others
read there.

  tools/measure/papers, tools/measure/compare, ... --tools/results--> docs/results/VERSION/*.md
                                                                          |
  tidy/cost.py (README.md), tidy/snapshots.py, tools/measure/papers --check-row <--'

A page is a snapshot: it is made for a version and never edited. It opens with what holds, what does
not, and what was once required instead. Nothing is measured here.
"""

import dataclasses
import itertools
import pathlib
import re
import subprocess
from collections.abc import Iterable, Iterator
from typing import Any

FOLDER = "docs/results"
OPENING_LINES = 10
DIRTY = "with uncommitted changes"
NO_LONGER = " no longer"
CASE = re.compile(r"## ([\w-]+)")
CELLS = re.compile(r"\| (.*) \|")
UNIT = re.compile(r" \[[^][]*\]$")
REQUIRED = re.compile(rf"(>=|<=|==) (-?[\d.e+-]+)(?:{NO_LONGER})?")
JUDGED = re.compile(r"(.+): -?[\d.]+ (>=|<=) (-?[\d.]+)(?: [^ ]+)??(?: of (.+?))? ?")


def git(root, *words) -> str:
    return subprocess.run(["git", "-c", f"safe.directory={root}", "-C", str(root), *words],
                          capture_output=True, text=True, errors="replace", check=False
                          ).stdout.strip()


def is_changed(root) -> bool:
    return bool(git(root, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs"))


def commit_of(root) -> str:
    """commit_of is what a page says of the tree that measured it."""
    head = git(root, "rev-parse", "--short=12", "HEAD")
    if not head:
        return "not known, this tree is no git repository"
    return f"`{head}`{' ' + DIRTY if is_changed(root) else ''}"


def version_key(name) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def newest(paths: Iterable[str], name) -> str | None:
    """newest is the path of the page NAME of the newest version among these paths, or None."""
    found = re.compile(rf"{FOLDER}/([^/]+)/{re.escape(name)}\.md")
    pages = [path for path in map(str, paths) if found.fullmatch(path)]
    return max(pages, key=lambda path: version_key(found.fullmatch(path)[1]), default=None)


def newest_below(root, name) -> pathlib.Path | None:
    pages = pathlib.Path(root, FOLDER).glob("*/*.md")
    path = newest((page.relative_to(root).as_posix() for page in pages), name)
    return pathlib.Path(root, path) if path else None


# --- how a page opens


def opening(first, missed, replaced) -> Iterator[str]:
    """`missed` are (where, what does not hold), `replaced` (where, bound, its state, why something
    else is required instead)."""
    yield from ("## What holds, and what does not", "", f"- {first}")
    places = [(where, [text for _, text in texts])
              for where, texts in itertools.groupby(missed, lambda one: one[0])]
    for i, (where, texts) in enumerate(places):
        if i == OPENING_LINES - 2 and len(places) > OPENING_LINES - 1:
            yield f"- and in {len(places) - i} more: {', '.join(name for name, _ in places[i:])}"
            break
        more = f"; and {len(texts) - 1} more" if len(texts) > 1 else ""
        yield f"- does not hold in {where}: {texts[0]}{more}"
    yield ""
    if replaced:
        yield from ("## What was once required", "",
                    "Bounds that were changed, with their old value: what they come to now, and "
                    "why something else is required instead.", "",
                    "| where | bound | | why it was replaced |", "|---|---|---|---|")
        yield from (f"| {' | '.join(one)} |" for one in replaced)
        yield ""


# --- what a page shows


@dataclasses.dataclass(frozen=True)
class Bound:
    """A bound as a page shows it: `limit` as it stands there, rounded."""

    where: str
    what: str
    relation: str
    limit: str
    of: str = ""
    is_met: bool | None = dataclasses.field(default=None, compare=False)


def bound(where, text, is_met=None) -> Bound | None:
    """bound reads "throughput, auto, a: 0.9959 >= 0.9900 of UDP"."""
    if not (found := JUDGED.fullmatch(text)):
        return None
    return Bound(where, UNIT.sub("", found[1]), found[2], found[3], found[4] or "", is_met)


def bounds_of(text) -> Iterator[Bound]:
    """The bounds of a page of either form: a row of a case (wired, wifi), or of the lists of the
    papers' page."""
    where = ""
    for line in text.splitlines():
        if found := CASE.fullmatch(line):
            where = found[1]
        if not (cells := CELLS.fullmatch(line)):
            continue
        row = cells[1].split(" | ")
        if len(row) >= 5 and (required := REQUIRED.fullmatch(row[3])):
            yield Bound(where, UNIT.sub("", row[0]), required[1], required[2], "",
                        row[4].startswith(("ok", "met")))
        elif len(row) in (3, 4) and (one := bound(row[0], row[1], row[2] == "met")):
            yield one
