#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""mypy finds nothing in the repository's Python, and every function says what it returns.

Goal:   a name that is not there, a wrong argument or a missing result is seen before somebody runs
        into it.
Method: mypy, as pyproject.toml has it, over each folder alone, for they hold files of one name; the
        syntax tree for the annotations. A fault of each kind is planted and must be found.
Bounds: none but zero. Exit code 77 where mypy or git is not installed.
"""
import ast
import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Folders whose modules others import by their bare names.
SHARED = ("tests/lab tools/dev/manual tools/dev/tidy tools/measure/compare.d "
          "tools/measure/limits.d tools/measure/papers.d tools/measure/results.d "
          "tools/measure/trial.d").split()
PLANTED = "def half(n: int) -> str:\n    return n // 2\n"
PLANTED_BARE = "def half(n):\n    return n // 2\n"


def mypy(folder: pathlib.Path, *files: pathlib.Path) -> tuple[int, str]:
    path = os.pathsep.join(map(str, [folder, *(ROOT / name for name in SHARED)]))
    done = subprocess.run(["mypy", "--config-file", str(ROOT / "pyproject.toml"), *map(str, files)],
                          capture_output=True, text=True, check=False, cwd=ROOT,
                          env=os.environ | {"MYPYPATH": path})
    return done.returncode, done.stdout + done.stderr


def bare_functions(file: pathlib.Path) -> list[str]:
    """Functions without an annotation of what they return."""
    return [f"{file}:{node.lineno}: {node.name} does not say what it returns"
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.FunctionDef) and node.returns is None]


def main() -> int:
    if shutil.which("mypy") is None or not (ROOT / ".git").exists():
        print("skipped: mypy is not installed (tools/bootstrap does), or this is no repository")
        return 77
    names = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "*.py"], capture_output=True,
                           text=True, check=True).stdout.split("\0")
    folders = collections.defaultdict(list)
    for file in (ROOT / name for name in names if name and (ROOT / name).is_file()):
        folders[file.parent].append(file)
    found = 0
    for folder, files in sorted(folders.items()):
        code, output = mypy(folder, *files)
        bare = [line for file in files for line in bare_functions(file)]
        if code != 0 or bare:
            found += 1
            print(output, *bare, sep="\n")
    print(f"{len(names) - 1} files in {len(folders)} folders: {found} folders with findings")
    with tempfile.TemporaryDirectory() as folder_name:
        planted = pathlib.Path(folder_name, "planted.py")
        planted.write_text(PLANTED)
        is_seen = "[return-value]" in mypy(planted.parent, planted)[1]
        planted.write_text(PLANTED_BARE)
        is_seen = is_seen and len(bare_functions(planted)) == 1
    print("what is planted is found" if is_seen else "FAIL: what is planted is not found")
    return 0 if found == 0 and folders and is_seen else 1


if __name__ == "__main__":
    sys.exit(main())
