#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""tools/measure/results without its hours: results_test.py TOOLS_RESULTS.

Goal:   the pages of a tagged version stay, a tree with changes or a busy machine measures nothing,
        a command that fails is on its page, and links lead to the new pages.
Method: the program's own functions in a repository of their own, with commands that take no time.
Bounds: none but what the files say.
"""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("results", sys.argv[1])
results: Any = importlib.util.module_from_spec(importlib.util.spec_from_loader("results", loader))
loader.exec_module(results)


def git(root, *words) -> None:
    subprocess.run(["git", "-C", root, "-c", "user.name=x", "-c", "user.email=x@y", *words],
                   check=True, capture_output=True)


def test_refusals(root) -> None:
    results.LOAD_MAX = float("inf")
    assert results.refusal(root, "1.2.3") == ""
    (root / "README.md").write_text("changed\n")
    assert "changes" in results.refusal(root, "1.2.3")
    git(root, "checkout", "-q", "--", ".")
    git(root, "tag", "v1.2.3")
    assert "tagged" in results.refusal(root, "1.2.3")
    assert results.refusal(root, "1.2.4") == "", "the next one"
    results.LOAD_MAX = -1.0
    assert "load" in results.refusal(root, "1.2.4"), os.getloadavg()


def test_what_commands_print_is_a_page(root) -> None:
    results.PRINTED = {"some": ("Some", [["echo", "one two"], ["sh", "-c", "echo no >&2; exit 3"]])}
    path = root / "made" / "some.md"
    path.parent.mkdir()
    assert results.make("some", path)
    text = path.read_text()
    opening, *sections = text.split("\n## ")[1:]
    assert "- 1 of 2 commands ended well" in opening and "ended with 3" in opening, opening
    assert "- commit: `" in opening, opening
    assert sections[0] == "echo 'one two'\n\n```text\none two\n```\n", sections
    assert "```text\nno\n```" in sections[1], sections


def test_a_page_is_whole_or_not_there(root) -> None:
    write = "echo half > $1; exit "
    for code, is_made in (("0", True), ("1", True), ("77", False), ("2", False)):
        results.WRITERS = {"other": ["sh", "-c", write + code, "sh"]}
        path = root / "made" / f"other-{code}.md"
        assert results.make("other", path) == is_made == path.exists(), code


def test_links_lead_to_the_new_pages(root) -> None:
    old = root / "docs/results/1.2.4"
    old.mkdir(parents=True)
    (old / "gone.md").write_text("of a run before\n")
    results.publish(root, root / "made", "1.2.4")
    assert (old / "some.md").exists() and not (old / "gone.md").exists(), list(old.iterdir())
    assert "[a](docs/results/1.2.4/some.md)" in (root / "README.md").read_text()
    assert "[b](results/1.2.4/some.md), 0.1.0" in (root / "docs/a.md").read_text()
    kept = (root / "docs/results/0.1.0/some.md").read_text()
    assert kept == "as results/0.1.0/some.md\n", kept


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = results.ROOT = Path(folder)
        (root / "docs/results/0.1.0").mkdir(parents=True)
        (root / "README.md").write_text("[a](docs/results/0.1.0/some.md)\n")
        (root / "docs/a.md").write_text("[b](results/0.1.0/some.md), 0.1.0\n")
        (root / "docs/results/0.1.0/some.md").write_text("as results/0.1.0/some.md\n")
        git(root, "init", "-q")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "x")
        test_refusals(root)
        test_what_commands_print_is_a_page(root)
        test_a_page_is_whole_or_not_there(root)
        test_links_lead_to_the_new_pages(root)


if __name__ == "__main__":
    main()
