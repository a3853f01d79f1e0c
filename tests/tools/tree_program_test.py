#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""What the program says of folders before it sends them: tree_program_test.py ONEHOP [WORD].

Goal:   --dry-run lists what would be sent and what would not, by which rule, and asks nobody.
Method: the real program over a folder with every kind of entry; its lines and exit code.
Bounds: none on time but that it ends at once.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def listed(onehop, *words, code=0) -> Any:
    done = subprocess.run([onehop, "send", *map(str, words), "--to", "127.0.0.1", "--dry-run"],
                          capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout.splitlines() if code == 0 else done.stderr


def tree(root) -> Path:
    top = root / "d"
    (top / "s" / "t").mkdir(parents=True)
    for name in ("a", "b.o", "keep.o", "s/c", "s/t/e.o"):
        (top / name).write_text(name)
    (top / "link").symlink_to("a")
    (top / "out").symlink_to("/etc/passwd")
    os.mkfifo(top / "fifo")
    os.link(top / "a", top / "s" / "again")
    return top


def names(lines, word) -> list[str]:
    return sorted(line.split()[1 if word != "left out" else 2] for line in lines
                  if line.startswith(word + " "))


def main(onehop) -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = tree(Path(folder))
        lines = listed(onehop, top)
        assert names(lines, "send") == sorted([
            "d/", "d/a", "d/b.o", "d/keep.o", "d/s/", "d/s/again", "d/s/c", "d/s/t/", "d/s/t/e.o"
        ]), lines
        assert names(lines, "left out") == sorted(
            str(top / name) for name in ("fifo", "link", "out")), lines
        assert lines[-1].startswith("6 files in 3 folders") and "hard link" in lines[-1], lines

        # In the order given, over all three options.
        rules = Path(folder) / "rules"
        rules.write_text("# objects\n*.o\n")
        lines = listed(onehop, f"{top}/", "--exclude-from", rules, "--include", "keep.o",
                       "--exclude", "/s/")
        assert names(lines, "send") == ["a", "keep.o"], lines
        assert [line.split()[-1] for line in lines if line.startswith("excluded")
                ].count("/s/") == 1, lines
        assert names(lines, "excluded") == sorted([str(top / "b.o"), str(top / "s")]), lines
        lines = listed(onehop, f"{top}/", "--include", "keep.o", "--exclude", "*.o")
        assert "keep.o" not in names(lines, "send"), lines

        lines = listed(onehop, top, "--symlinks", "follow-inside")
        assert "d/link" in names(lines, "send"), lines
        assert str(top / "out") in names(lines, "left out"), lines
        assert "symbolic link" in listed(onehop, top, "--symlinks", "error", code=8)
        assert "--symlinks" in listed(onehop, top, "--symlinks", "never", code=2)
        assert "fifo" in listed(onehop, top / "fifo", code=8)


main(sys.argv[1])
