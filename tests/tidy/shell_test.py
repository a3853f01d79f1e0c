#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""shellcheck finds nothing in the repository's shell scripts, and finds what is planted in one.

Goal: an unquoted variable or a cd that fails is seen before somebody's files are. Method:
        shellcheck over every tracked file with a #! line of a shell. Bounds: none but zero. Exit
        code 77 where shellcheck or git is not installed.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLANTED = "#!/usr/bin/env bash\nrm -rf $1/lost\n"


def is_shell(path) -> bool:
    with open(path, "rb") as file:
        return re.match(rb"#!.*\b(ba|da)?sh\b", file.readline()) is not None


def findings(*paths) -> tuple[Any, Any]:
    done = subprocess.run(["shellcheck", "-x", *map(str, paths)], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout + done.stderr


def main() -> int:
    if shutil.which("shellcheck") is None or not (ROOT / ".git").exists():
        print("skipped: shellcheck is not installed, or this is no repository")
        return 77
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True,
                           check=True).stdout.split("\0")
    scripts = [
        ROOT / name for name in names if name and (ROOT / name).is_file() and is_shell(ROOT / name)
    ]
    code, output = findings(*scripts)
    print(f"{len(scripts)} scripts: {'nothing found' if code == 0 else output}")
    with tempfile.TemporaryDirectory() as folder:
        planted = pathlib.Path(folder, "planted")
        planted.write_text(PLANTED)
        is_seen = "SC2086" in findings(planted)[1]
    print("what is planted is found" if is_seen else "FAIL: what is planted is not found")
    return 0 if code == 0 and scripts and is_seen else 1


if __name__ == "__main__":
    sys.exit(main())
