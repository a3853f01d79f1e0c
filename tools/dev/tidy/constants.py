# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""constants: what the comment of a law's constant must say. Used by tidy.

  // Ours. Low: what happens when it is too low. High: when it is too high.
  constexpr Nanos x{2ms};                 its source: Ours, Derived, Measured or [KEY]
  //= [KEY] what                          the paper or the standard gives the value
  constexpr Nanos x{5'484us};
  constexpr int x = 7;  // derived: from what        nobody chose it
"""
import re
from collections.abc import Iterator
from typing import Any

FOLDER = "control/law/"
CONSTANT = re.compile(
    r"^ *(?:static |inline )*constexpr (?!std::(?:array|string_view))[\w:]+ (\w+) ?[{=]"
)
SOURCE = re.compile(r"\b(?:ours|derived|measured)\b|\[[\w. ]+\]", re.I)


def comment_of(lines, at) -> list[Any]:
    """The comment beside line `at` and the block above it."""
    begin = at
    while begin > 0 and lines[begin - 1].lstrip().startswith("//"):
        begin -= 1
    beside = lines[at].partition("//")[2]
    return [line.strip() for line in lines[begin:at]] + ([f"// {beside.strip()}"] if beside else [])


def findings(tree) -> Iterator[Any]:
    """findings yields (path, line, text)."""
    for path, text in tree.code((".cpp", ".hpp")):
        if not path.startswith(FOLDER):
            continue
        lines = text.split("\n")
        for at, line in enumerate(lines):
            if not (found := CONSTANT.match(line)):
                continue
            comment = comment_of(lines, at)
            words = " ".join(comment)
            is_given = any(part.startswith(("//= [", "// derived: ")) for part in comment)
            has_cost = re.search(r"\blow and high:", words, re.I) or all(
                re.search(rf"\b{word}:", words, re.I) for word in ("low", "high")
            )
            if not is_given and not (SOURCE.search(words) and has_cost):
                yield path, at + 1, (
                    f"{found[1]} needs a comment with its source and what happens when it is too"
                    " low and too high"
                )
