#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""equations: which equation of which paper is where in the code, and which tests name it.

  //= [KEY] what                              code that follows the paper
  //= [KEY] what  type=deviation reason=why   code that does something else there
  //= [KEY] what  type=test                   the test below it is about that
  //=   more of the line above                three spaces: a citation may take several lines

`what` is "eq. (2), (3)", one row for each of them, or words. The papers are the list below
"References" of control/README.md. Places are given by file and symbol, without line numbers, so
that the page changes only when a citation, its function or its test does.

Used by tidy, which compares the page; as a program it prints the page, and with --write writes it.
Exit code: 0, or 2 for wrong arguments.
"""

from collections.abc import Iterator
from typing import Any
import argparse
import dataclasses
import pathlib
import re
import sys

PAGE = "docs/equations.md"
PAPERS = "control/README.md"
CPP = (".cpp", ".hpp")
CITATION = re.compile(r"^( *)//= \[([^\]]+)\] ([^\n]*(?:\n *//=   [^\n]*)*)", re.M)
CONTINUATION = re.compile(r"\s*\n *//=   ")
SOURCE = re.compile(r"^ *// Source: [^\n]*", re.M)
TEST = re.compile(r'TEST_CASE(?:_METHOD)?\s*\((?:\s*\w+\s*,)?\s*((?:"(?:\\.|[^"\\])*"\s*)+)')
TYPE_NAME = re.compile(r"(?:class|struct|enum(?: class)?) (\w+)")
CONSTANT = re.compile(r"(?:inline |static )*constexpr [^({=]*?(\w+)\s*[{=]")
FUNCTION = re.compile(r"[^=;]*?([\w:~]+)\s*\(")
HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only -->
# Equations: where each paper is in the code

`tools/dev/tidy/equations.py --write` makes this page of the citations in the code (`//= [KEY]
what`), and `tidy` compares it. "Deviation": the code does something else there, and the citation
says why.
"""


@dataclasses.dataclass(frozen=True)
class Citation:
    path: str
    line: int
    key: str
    what: str
    kind: str  # "", "deviation" or "test"
    reason: str
    place: str  # the symbol or the test's name; "" for the file as a whole


def papers_of(tree) -> dict[Any, Any]:
    """papers_of returns key -> reference, up to our use of it ("Here: ...")."""
    section = re.search(r"^## References\n(.*?)(?=^#|\Z)", tree.texts.get(PAPERS, ""), re.S | re.M)
    entry = re.compile(r"^\* \*\*\[([^\]]+)\]\*\* (.*?)(?=^\* |\n\n|\Z)", re.S | re.M)
    entries = entry.findall(section[1]) if section else []
    return {key: re.split(r"\bHere: ", " ".join(text.split()))[0].strip() for key, text in entries}


def name_in(code) -> Any:
    """The name that this line of code declares."""
    for pattern in (TYPE_NAME, CONSTANT):
        if found := pattern.match(code):
            return found[1]
    found = FUNCTION.match(code)
    return f"{found[1]}()" if found else ""


def place_of(text, citation) -> Any:
    """What the next line of code declares, or the function or type around the citation."""
    is_code = re.compile(r"^(?!//)[^\s{}#][^\n]*", re.M)
    if citation[1]:
        before = [line[0] for line in is_code.finditer(text, 0, citation.start())]
        return next((name for line in reversed(before) if (name := name_in(line))), "")
    after = re.compile(r"^(?! *//)[^\n]*\S[^\n]*", re.M).search(text, citation.end())
    return name_in(after[0]) if after else ""


def citations_of(tree) -> Iterator[Any]:
    for path, text in sorted(tree.code(CPP)):
        for found in CITATION.finditer(text):
            said = CONTINUATION.sub(" ", found[3])
            kind = re.search(r"\btype=(\S*)", said)
            reason = re.search(r"\breason=(.*)", said)
            what = re.split(r"[:;] |\s+type=", said)[0].strip()
            test = TEST.search(text, found.end()) if kind and kind[1] == "test" else None
            words = re.findall(r'"((?:\\.|[^"\\])*)"', test[1]) if test else []
            yield Citation(
                path=path,
                line=text.count("\n", 0, found.start()) + 1,
                key=found[2],
                what=what,
                kind=kind[1] if kind else "",
                reason=reason[1] if reason else "",
                place="".join(words) if test else place_of(text, found),
            )


def rows_of(citation) -> Iterator[Any]:
    """rows_of yields (row, remark): "eq. (5), (6), i >= 2" is of two, both for i >= 2."""
    found = re.fullmatch(r"eq\. (\(\w+\)(?:, \(\w+\))*)(?:, (.*))?", citation.what)
    if not found:
        yield citation.what, ""
        return
    for number in re.findall(r"\(\w+\)", found[1]):
        yield f"eq. {number}", found[2] or ""


def cell_of(citations) -> str:
    """One cell of the table: each file once, with all that it has."""
    places = {}
    for citation, remark in citations:
        is_test = citation.kind == "test"
        deviation = "deviation" if citation.kind == "deviation" else ""
        remarks = ", ".join(filter(None, (remark, deviation)))
        quote = '"' if is_test else "`"
        name = f"{quote}{citation.place}{quote}" if citation.place else ""
        place = f"{name} ({remarks})" if name and remarks else name or remarks
        if place not in places.setdefault(citation.path, []):
            places[citation.path].append(place)
    cells = [
        f"`{path}`" + (": " if any(names) else "") + "; ".join(filter(None, names))
        for path, names in places.items()
    ]
    return "<br>".join(cells).replace("|", "\\|")


def table_of(citations) -> Iterator[Any]:
    rows = {}
    for citation in citations:
        for row, remark in rows_of(citation):
            rows.setdefault(row, []).append((citation, remark))
    yield "| What | Code | Tests |"
    yield "|---|---|---|"
    for row in sorted(rows, key=lambda row: (not row.startswith("eq. "), row.lower())):
        code = [(c, remark) for c, remark in rows[row] if c.kind != "test"]
        tests = [(c, remark) for c, remark in rows[row] if c.kind == "test"]
        yield f"| {row} | {cell_of(code) or '-'} | {cell_of(tests) or '-'} |"


def page_of(tree) -> str:
    citations = list(citations_of(tree))
    lines = [HEAD]
    for key, reference in papers_of(tree).items():
        files = [
            path
            for path, text in sorted(tree.code(CPP))
            if any(f"[{key}]" in line for line in SOURCE.findall(text))
        ]
        cited = [citation for citation in citations if citation.key == key]
        lines += [f"## {key}", "", reference, ""]
        if files:
            lines += ["Written out in " + ", ".join(f"`{path}`" for path in files) + ".", ""]
        if cited:
            lines += [*table_of(cited), ""]
    return "\n".join(lines)


def findings(tree) -> Iterator[Any]:
    """findings yields (path, line, text)."""
    papers = papers_of(tree)
    citations = list(citations_of(tree))
    for citation in citations:
        where = citation.path, citation.line
        if citation.key not in papers:
            yield *where, f"[{citation.key}] is not below 'References' in {PAPERS}"
        if citation.kind not in ("", "deviation", "test"):
            yield *where, f"type={citation.kind}: a citation is of type deviation, test, or none"
        if citation.kind == "deviation" and not citation.reason:
            yield *where, "a deviation has a reason (reason=...)"
        if citation.path.startswith("tests/") and citation.kind != "test":
            yield *where, "a citation in tests is of type=test"
        if citation.path.startswith("tests/") and not citation.place:
            yield *where, "no test is below it"
    if (citations or PAGE in tree.texts) and tree.texts.get(PAGE) != page_of(tree):
        yield PAGE, 0, "it is not what the code cites (tools/dev/tidy/equations.py --write)"


def main(argv) -> int:
    import tidy

    parser = argparse.ArgumentParser(
        description="Which equation of which paper is where in the code, and which tests name it."
    )
    root = pathlib.Path(__file__).resolve().parents[3]
    parser.add_argument("--root", type=pathlib.Path, default=root)
    parser.add_argument("--write", action="store_true", help=f"write it to {PAGE}")
    options = parser.parse_args(argv)
    page = page_of(tidy.read_tree(options.root))
    if options.write:
        (options.root / PAGE).write_text(page)
    else:
        print(page, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
