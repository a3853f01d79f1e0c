# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""documents: what pages name between backticks is there: paths everywhere, and in pages that
describe the code also classes, their members and functions. What docs/architecture.md defines below
"Ten words" no other of these pages defines. Used by tidy."""
import pathlib
import posixpath
import re
from collections.abc import Iterator
from typing import Any

ROOMS = ("engine/", "xdp/", "control/", "tools/")
# Pages on the code: a name in them that nobody finds misleads.
DRAWN = "docs/architecture.md"
LINK = re.compile(r"\]\(([\w./-]+)(?:#[^()]*)?\)")
PATH = re.compile(r"`([\w.-]+/[\w./-]*)`")
NAME = re.compile(r"`(?:[a-z]\w*::)*([A-Z][a-z]\w*)(?:::(~?\w+))?(?:\(\))?`")
FUNCTION = re.compile(r"`([a-z]\w*)\(\)`")
IN_DRAWING = re.compile(r"\b(?:[A-Z][a-z0-9]+){2,}\b")
DECLARED = re.compile(r"\b(?:class|struct|enum(?: class)?|union|concept)\s+(\w+)|\busing (\w+) =")


DEFINED = re.compile(r"\*\*([\w -]+)\*\*")


def words_of(tree) -> set[str]:
    """The words that the table of docs/architecture.md defines."""
    section = re.search(r"^## Ten words\n(.*?)^#", tree.texts.get(DRAWN, ""), re.S | re.M)
    rows = re.findall(r"^\| ([a-z][a-z ]*) \|", section[1], re.M) if section else []
    return set(rows) - {"word"}


def is_on_code(path) -> bool:
    return path == DRAWN or (path.startswith(ROOMS) and path.endswith("/README.md"))


def declarations_of(code) -> dict[str, list[str]]:
    """The texts that declare each type, by its name."""
    found: dict[str, list[str]] = {}
    for text in code:
        for names in set(DECLARED.findall(text)):
            found.setdefault("".join(names), []).append(text)
    return found


def faults_of_line(line, is_drawing, declared, code) -> Iterator[str]:
    """What the line names and the code does not have."""
    if is_drawing:
        yield from (name for name in IN_DRAWING.findall(line) if name not in declared)
        return
    for name, member in NAME.findall(line):
        if name not in declared:
            yield name
        elif member and not any(re.search(rf"\b{member}\b", text) for text in declared[name]):
            yield f"{name}::{member}"
    for name in FUNCTION.findall(line):
        if not any(re.search(rf"\b{name}\(", text) for text in code):
            yield f"{name}()"


def findings(tree) -> Iterator[Any]:
    """findings yields (path, line, text). NAME stands for any name. A page of figures names what
    was there."""
    known = set(tree.texts) | set(tree.strays) | {
        str(folder) for path in tree.texts for folder in pathlib.PurePath(path).parents
    }
    code = [text for path, text in tree.code((".hpp", ".cpp")) if path.startswith(ROOMS)]
    declared, words = declarations_of(code), words_of(tree)
    for path, text in tree.code((".md",)):
        if path.startswith("docs/results/"):
            continue
        is_fence = False
        for number, line in enumerate(text.splitlines(), 1):
            is_fence = is_fence != line.startswith("```")
            for name in PATH.findall(line):
                if name.split("/")[0] in known and name.rstrip(
                        "/") not in known and "NAME" not in name:
                    yield path, number, f"{name} is not there"
            for name in LINK.findall(line):
                place = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
                if place not in known:
                    yield path, number, f"{place}, which the link {name} leads to, is not there"
            if is_on_code(path):
                for name in faults_of_line(line, is_fence, declared, code):
                    yield path, number, f"the code has no {name}"
                for word in DEFINED.findall(line):
                    if word.lower() in words:
                        yield path, number, f"'{word}' is defined in {DRAWN}"
