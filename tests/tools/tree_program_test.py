#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Folders before they are sent, and recv --clean: tree_program_test.py ONEHOP [WORD].

Goal:   --dry-run lists what would be sent and what would not, by which rule, and asks nobody. recv
        --clean tells what it removed and what it left, and its exit code is right.
Method: the real program over a folder with every kind of entry; its lines and exit code.
Bounds: none on time but that it ends at once.
"""

import json
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
        lines = listed(onehop, top, "--symlinks", "copy")
        assert "d/link" in names(lines, "send"), lines
        assert str(top / "out") in names(lines, "left out"), lines
        assert "symbolic link" in listed(onehop, top, "--symlinks", "error", code=8)
        assert "--symlinks" in listed(onehop, top, "--symlinks", "never", code=2)
        assert "fifo" in listed(onehop, top / "fifo", code=8)


def test_clean(onehop) -> None:
    def run(*words, code=0) -> tuple[str, str]:
        done = subprocess.run([onehop, "recv", *map(str, words)], capture_output=True, text=True,
                              timeout=20, stdin=subprocess.DEVNULL)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stdout, done.stderr

    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        stage, mine = top / "d" / ".onehop-stage", top / "d" / ".a\x1b[31m.part"
        stage.mkdir(parents=True)
        stage.chmod(0o700)
        (stage / "1f").write_text("left")
        mine.write_text("a user's")
        (top / ".onehop-session").write_text("")
        (top / ".onehop-session").chmod(0o600)

        _, told = run("--clean", top, "--dry-run")
        assert "would be removed: d/.onehop-stage  " in told and "2 things, " in told, told
        assert stage.exists()
        for word in ("--once", "--dir=x", "--listen=127.0.0.1"):
            run("--clean", top, word, code=2)
        run("--dry-run", code=2)
        assert stage.exists()

        lines, told = run("--clean", top, "--json")
        event = json.loads(lines)
        assert (event["type"], event["removed"], event["kept"]) == ("clean", 2, 1), event
        assert event["bytes"] > 0 and not event["dry_run"], event
        assert "\x1b" not in told and "left: d/.a\\u{1B}[31m.part: " in told, told
        assert sorted(top.rglob("*")) == [top / "d", mine]

        lines, told = run("--clean", top / "none", "--json", code=8)
        assert json.loads(lines)["exit_code"] == 8 and "No such file" in told, told


main(sys.argv[1])
test_clean(sys.argv[1])
