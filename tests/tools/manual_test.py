#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
"""Man pages and completions: manual_test.py ONEHOP [WORD].

Goal:   both know every command and option that --help knows, and no other.
Method: tools/manual makes them of the real program; the bash completion is asked in bash, as the shell would; the others are parsed by their shells
        where these are installed. Pages are read as their source, where man is not installed.
Bounds: none but equality.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for folder in ("tests/lab", "tools/manual"):
    sys.path.insert(0, str(ROOT / folder))
sys.dont_write_bytecode = True
from help import read  # noqa: E402
from program import Skip, check, main  # noqa: E402

ASK = """. {file}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _onehop; printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def made(onehop, folder):
    done = subprocess.run([sys.executable, ROOT / "tools/manual/make.py", onehop, ROOT / "README.md", folder], capture_output=True, text=True, check=False)
    check(done.returncode == 0, done.stderr)
    return Path(folder)


def completed(folder, *words):
    shown = " ".join(f"'{word}'" for word in words)
    done = subprocess.run(["bash", "-c", ASK.format(file=folder / "onehop.bash", words=shown)], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_help_is_read_whole(onehop):
    root = read(onehop)
    names = [command.path[0] for command in root.commands]
    check({"send", "recv", "doctor", "watch", "plot", "bench"} <= set(names), f"the commands: {names}")
    for command in root.walk():
        text = subprocess.run([onehop, *command.path, "--help"], capture_output=True, text=True, check=True).stdout
        printed = {name for line in re.findall(r"^  (--?\S+)", text, re.M) for name in line.split(",")}
        known = {name for entry in command.options for name in entry.names}
        check(printed == known, f"{command.name}: {printed ^ known}")
        check(all(entry.text for entry in command.options), f"{command.name}: each option has its text")


def test_bash_completes(onehop):
    with tempfile.TemporaryDirectory() as name:
        folder = made(onehop, name)
        check("send" in completed(folder, "onehop", ""), "commands")
        check(completed(folder, "onehop", "bench", "lo") == ["loop"], "commands of a command")
        check(completed(folder, "onehop", "send", "--io", "a") == ["auto", "afxdp"], "the words of an option")
        check(completed(folder, "onehop", "recv", "--dir", "/et") == ["/etc"], "folders")
        check("/etc/hostname" in completed(folder, "onehop", "send", "/etc/hostn"), "files to send")
        for command in read(onehop).walk():
            offered = set(completed(folder, "onehop", *command.path, "--"))
            known = {option for entry in command.options for option in entry.names if option.startswith("--")}
            check(offered == known, f"{command.name}: {offered ^ known}")


def test_the_other_shells_take_theirs(onehop):
    with tempfile.TemporaryDirectory() as name:
        folder = made(onehop, name)
        shells = [(shell, file) for shell, file in (("zsh", "_onehop"), ("fish", "onehop.fish")) if shutil.which(shell)]
        if not shells:
            raise Skip("neither zsh nor fish is installed")
        for shell, file in shells:
            done = subprocess.run([shell, "-n", folder / file], capture_output=True, text=True, check=False)
            check(done.returncode == 0, f"{shell}: {done.stderr}")


def test_pages_have_every_option(onehop):
    if shutil.which("scdoc") is None:
        raise Skip("scdoc is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = made(onehop, name)
        root = read(onehop)
        for top in (root, *root.commands):
            text = (folder / f"{'-'.join(('onehop', *top.path))}.1").read_text().replace("\\-", "-").replace("\\", "")
            for command in ((top,) if top is root else top.walk()):
                missing = [option for entry in command.options for option in entry.names if option not in text]
                check(not missing, f"{command.name}: {missing}")
            check("EXIT STATUS" in text and "authentication failed" in text, f"{top.name}: exit codes")


if __name__ == "__main__":
    sys.exit(main(globals(), needs_root=False))
