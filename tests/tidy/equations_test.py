#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""tidy and the papers: docs/equations.md is what the code cites, and each citation can be followed.

Goal:   a citation that is wrong, or that the page does not have, is found.
Method: a small tree with citations of each kind; the page is made by the program and compared with
        what it must be, then one fault at a time is planted.
Bounds: tidy's exit code and the line printed.
"""
from typing import Any
import pathlib
import subprocess
import sys
import tempfile

from self_test import DUAL, TIDY, clean_tree, cpp, run_tidy

LAW = "control/law/law.cpp"
TEST = "tests/law_test.cpp"
PAGE = "docs/equations.md"
CITED = cpp(
    "// Source: [PAPER], section 1.",
    "//= [PAPER] eq. (1), (2)",
    "Rate Law::step(const Sample& sample) {",
    "  go();",
    "  //= [PAPER] eq. (2), i = 1  type=deviation",
    "  //=   reason=nothing is ever 0",
    "  stay();",
    "}",
    "//= [PAPER] table 3: d = 4",
    "constexpr Nanos d{4};",
)
TESTED = cpp(
    "//= [PAPER] eq. (1) type=test",
    "// Goal: x.",
    'TEST_CASE("the rate "',
    '          "is right", "[law]") {}',
)
TREE = {
    "control/README.md": f'<!-- {DUAL} -->\n## References\n\n* **[PAPER]** A. Author. "On\n'
    '  Rates". Here: all of it.\n\n## Symbols\n',
    LAW: CITED,
    TEST: TESTED,
    "docs/README.md": f"<!-- {DUAL} -->\n",
}
SECTION = """## PAPER

A. Author. "On Rates".

Written out in `control/law/law.cpp`.

| What | Code | Tests |
|---|---|---|
| eq. (1) | `control/law/law.cpp`: `Law::step()` | `tests/law_test.cpp`: "the rate is right" |
| eq. (2) | `control/law/law.cpp`: `Law::step()`; `Law::step()` (i = 1, deviation) | - |
| table 3 | `control/law/law.cpp`: `d` | - |
"""
# what is planted: (name, {path: text}, expected part of the output)
FAULTS: tuple[tuple[str, dict[str, Any], str], ...] = (
    (
        "an equation that is new",
        {LAW: CITED.replace("eq. (1), (2)", "eq. (1), (2), (3)")},
        "docs/equations.md:0: error: [equation] it is not what the code cites",
    ),
    (
        "a function that has another name",
        {LAW: CITED.replace("Law::step", "Law::tick")},
        "it is not what the code cites",
    ),
    (
        "a test that has another name",
        {TEST: TESTED.replace("right", "wrong")},
        "it is not what the code cites",
    ),
    ("no page", {PAGE: None}, "it is not what the code cites"),
    (
        "a paper nobody knows",
        {LAW: CITED.replace("[PAPER] table", "[PAPIER] table")},
        "control/law/law.cpp:10: error: [equation] [PAPIER] is not below 'References'",
    ),
    (
        "a kind nobody knows",
        {LAW: CITED.replace("type=deviation", "type=deviance")},
        "control/law/law.cpp:6: error: [equation] type=deviance",
    ),
    (
        "a deviation without a reason",
        {LAW: CITED.replace("  //=   reason=nothing is ever 0\n", "")},
        "control/law/law.cpp:6: error: [equation] a deviation has a reason",
    ),
    (
        "a test that cites as code does",
        {TEST: TESTED.replace(" type=test", "")},
        "tests/law_test.cpp:2: error: [equation] a citation in tests is of type=test",
    ),
    (
        "a citation below all tests",
        {TEST: TESTED + "//= [PAPER] eq. (1) type=test\n"},
        "error: [equation] no test is below it",
    ),
)


def page_of(folder) -> str:
    """The page that the program writes for the tree."""
    root = pathlib.Path(folder) / "page"
    for path, text in {**clean_tree(), **TREE}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    program = TIDY.parent / "equations.py"
    subprocess.run([sys.executable, str(program), "--root", str(root), "--write"], check=True)
    return (root / PAGE).read_text()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="onehop-tidy-") as folder:
        page = page_of(folder)
        assert page.endswith(SECTION), page
        tree = {**clean_tree(), **TREE, PAGE: page}
        code, output = run_tidy(folder, tree, "--quiet")
        assert code == 0 and "0 errors, 0 warnings" in output, output
        # Lines that move and comments that change leave the page as it is.
        code, output = run_tidy(
            folder,
            tree | {LAW: CITED.replace("// Source", "// A comment.\n\n// Source")},
            "--quiet",
        )
        assert code == 0, output
        for name, plant, expected in FAULTS:
            files = {path: text for path, text in (tree | plant).items() if text is not None}
            code, output = run_tidy(folder, files, "--quiet")
            assert (
                code == 1 and expected in output
            ), f"{name}: {expected!r} wanted:\n{code} {output}"
    print("equations: as expected")


if __name__ == "__main__":
    main()
