#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""pages: which pages of measured figures are of older code than the tree. docs/pages.toml says what
each of them depends on.

  page --"- commit: `...`"--> git diff COMMIT -- what it depends on --> files whose code differs -->
  stale, and the page says so

A page names the commits that its figures were made with; tools/papers and tools/compare write that
line. Comments, blank lines, Markdown and the files that its `harmless` names are no difference.
Used by tidy; as a program it lists the pages, and with --mark writes or removes the line of the
stale ones. Exit code: 0, or 2 for wrong arguments.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

MANIFEST = "docs/pages.toml"
UNMEASURED = ("by_hand", "generated")  # lists of pages without measured figures
MARK = (
    "**Stale**: code below this page has changed since its figures were made. They are of the "
    "commit that is named here."
)
COMMIT = re.compile(r"`([0-9a-f]{7,40})`")
DIRTY = "with uncommitted changes"
COMMENTS = {"cpp": re.compile(r"//[^\n]*|/\*.*?\*/", re.S), "py": re.compile(r"^\s*#[^\n]*", re.M)}


def git(root, *words) -> subprocess.CompletedProcess[Any]:
    return subprocess.run(["git", "-c", f"safe.directory={root}", "-C",
                           str(root), *words], capture_output=True, text=True, errors="replace")


def commit_line(root) -> str:
    """commit_line is what a page says of the tree that it is written from; without git it says
    that."""
    head = git(root, "rev-parse", "--short=12", "HEAD").stdout.strip()
    if not head:
        return "- commit: not known, this tree is no git repository"
    changed = git(root, "status", "--porcelain", "--untracked-files=no", "--", ".",
                  ":!docs").stdout.strip()
    return f"- commit: `{head}`{' ' + DIRTY if changed else ''}"


def commits_of(text) -> tuple[list[Any], bool]:
    """commits_of returns (commits, is_dirty) of a page's commit lines."""
    lines = [line for line in text.splitlines() if line.startswith("- commit: ")]
    return [commit for line in lines for commit in COMMIT.findall(line)], any(DIRTY in line
                                                                              for line in lines)


def bare(path, text) -> list[Any]:
    """The code alone. Literals with comment marks in them lose their rest, in both versions
    alike."""
    kind = "cpp" if path.endswith((".cpp", ".hpp", ".c", ".h")) else "py"
    return [line.rstrip() for line in COMMENTS[kind].sub("", text).splitlines() if line.strip()]


def changed_since(root, commit, page) -> Any:
    """changed_since lists the files below the page whose code differs, or is None where the commit
    is not known."""
    if git(root, "cat-file", "-e", f"{commit}^{{commit}}").returncode != 0:
        return None
    names = git(root, "diff", "--name-only", "-z", "--no-renames", commit, "--", *page["depends"],
                ":(exclude)*.md").stdout
    out = []
    for path in filter(None, names.split("\0")):
        before = git(root, "show", f"{commit}:{path}")
        now = root / path
        is_there = before.returncode == 0 and now.is_file()
        if path not in page.get("harmless", {}) and not (is_there and bare(
                path, before.stdout) == bare(path, now.read_text(errors="replace"))):
            out.append(path)
    return out


def manifest(root) -> tuple[Any, Any]:
    """manifest returns (page -> what it depends on, names of the pages without figures)."""
    pages = tomllib.loads((root / MANIFEST).read_text())
    unmeasured = [name for kind in UNMEASURED for name in pages.pop(kind, {}).get("pages", [])]
    return pages, unmeasured


def state_of(root, name, page) -> Any:
    """state_of returns (why it is stale or "", what is wrong with the page itself or "")."""
    path = root / "docs" / f"{name}.md"
    if not path.is_file():
        return "", "there is no such page"
    commits, is_dirty = commits_of(path.read_text())
    if not commits:
        return "", "it names no commit that its figures were made with"
    changed = set()
    for commit in commits:
        files = changed_since(root, commit, page)
        if files is None:
            return "", f"commit {commit} is not known here (a shallow clone?)"
        changed.update(files)
    why = (
        f"{len(changed)} files differ since: "
        f"{', '.join(sorted(changed)[:4])}{' ...' if len(changed) > 4 else ''}"
        if changed else "")
    return why or ("made with uncommitted changes" if is_dirty else ""), ""


def is_shallow(root) -> bool:
    return git(root, "rev-parse", "--is-shallow-repository").stdout.strip() != "false"


def mark(root, name, is_stale) -> None:
    """mark puts the line below the page's first commit line, or takes it away."""
    path = root / "docs" / f"{name}.md"
    lines = [line for line in path.read_text().splitlines() if line != MARK]
    at = next(i for i, line in enumerate(lines) if line.startswith("# ")) + 1
    while lines[at : at + 1] == [""]:
        del lines[at]
    lines[at:at] = ["", MARK, ""] if is_stale else [""]
    path.write_text("\n".join(lines) + "\n")


def findings(root) -> Iterator[Any]:
    """findings yields (path, text, is_warning) of every page."""
    pages, unmeasured = manifest(root)
    names = {path.stem for path in (root / "docs").glob("*.md")}
    for name in sorted(names - set(pages) - set(unmeasured)):
        yield f"docs/{name}.md", (f"{MANIFEST} says neither what it depends on nor that it has no "
                                  f"figures ({' or '.join(UNMEASURED)})"), False
    for name, page in pages.items():
        path = f"docs/{name}.md"
        for missing in [folder for folder in page["depends"] if not (root / folder).exists()]:
            yield MANIFEST, f"{name} depends on {missing}, which is not there", False
        why, fault = state_of(root, name, page)
        if fault:
            yield path, fault, "shallow" in fault and is_shallow(root)
            continue
        is_marked = MARK in (root / path).read_text().splitlines()[:12]
        if why and is_marked:
            yield path, f"stale: {why}", True
        elif why:
            yield path, ("stale, and does not say so (tools/tidy/pages.py --mark, or measure "
                         f"anew): {why}"), False
        elif is_marked:
            yield path, "it says that it is stale and is not (tools/tidy/pages.py --mark)", False


def main(argv) -> int:
    parser = argparse.ArgumentParser(
        description="Which pages of measured figures are of older code than the tree.")
    parser.add_argument("--mark", action="store_true",
                        help="write the line of the stale ones, remove it from the others")
    options = parser.parse_args(argv)
    root = pathlib.Path(__file__).resolve().parents[2]
    for name, page in manifest(root)[0].items():
        why, fault = state_of(root, name, page)
        print(f"{name}: {fault or why or 'of this code'}")
        if options.mark and not fault:
            mark(root, name, bool(why))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
